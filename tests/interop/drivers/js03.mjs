// Drives an agent with the JavaScript client of protocol 0.3, @a2a-js/sdk 0.3.x.
//
//     node js03.mjs BASE_URL BINDING [PATH]      BINDING: JSONRPC | HTTP+JSON; PATH: keep to the interface there

import { randomUUID } from 'node:crypto';
import { filled, gather, load, run } from './session.mjs';

const { AgentCardResolver, ClientFactory, ClientFactoryOptions } = load('@a2a-js/sdk/client');
const [base, binding, path] = process.argv.slice(2);

async function connect() {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [binding] });
  const factory = new ClientFactory(options);
  if (!path) return factory.createFromUrl(base);
  const card = await AgentCardResolver.default.resolve(base);
  return factory.createFromAgentCard({ ...card, url: base + path, preferredTransport: binding, additionalInterfaces: [] });
}

let connected;
const client = () => (connected ??= connect());

function readPart(part) {
  if (part.kind === 'text') return { text: part.text };
  if (part.kind === 'data') return { data: part.data };
  const { bytes, uri, mimeType, name } = part.file;
  return { ...(uri === undefined ? { raw: bytes } : { url: uri }), ...filled({ media_type: mimeType, filename: name }) };
}

function makePart(plain) {
  if ('text' in plain) return { kind: 'text', text: plain.text };
  if ('data' in plain) return { kind: 'data', data: plain.data };
  const body = 'raw' in plain ? { bytes: plain.raw } : { uri: plain.url };
  return { kind: 'file', file: { ...body, ...filled({ mimeType: plain.media_type, name: plain.filename }) } };
}

const partsOf = (value) => (value?.parts ?? []).map(readPart);

const taskOf = (task) => ({
  kind: 'task',
  task: task.id,
  context: task.contextId,
  state: task.status.state,
  said: partsOf(task.status.message),
  artifacts: (task.artifacts ?? []).map((each) => ({ name: each.name, parts: partsOf(each) })),
  history: (task.history ?? []).map((each) => ({ role: each.role, parts: partsOf(each) })),
});

function eventOf(item) {
  if (item.kind === 'task') return taskOf(item);
  if (item.kind === 'message') return { kind: 'message', task: item.taskId ?? '', parts: partsOf(item) };
  if (item.kind === 'status-update') {
    return { kind: 'status', task: item.taskId, state: item.status.state, said: partsOf(item.status.message), final: item.final };
  }
  return {
    kind: 'artifact',
    task: item.taskId,
    artifact: item.artifact.artifactId,
    parts: partsOf(item.artifact),
    append: Boolean(item.append),
    last: Boolean(item.lastChunk),
  };
}

const request = ({ parts, task, context, wait }) => ({
  message: {
    kind: 'message',
    messageId: randomUUID(),
    role: 'user',
    parts: parts.map(makePart),
    ...filled({ taskId: task, contextId: context }),
  },
  ...(wait === undefined ? {} : { configuration: { blocking: wait, acceptedOutputModes: [] } }),
});

const cancel = async ({ task }) => taskOf(await (await client()).cancelTask({ id: task }));

const send = async (given) => eventOf(await (await client()).sendMessage(request({ wait: true, ...given })));

// What is done while a stream is read: cancel its task at once, or answer its question.
const reaction = ({ cancel_it, answer }) => async (event, first) => {
  if (cancel_it && first) await cancel(event);
  if (answer && event.state === 'input-required') await send({ parts: answer, task: event.task });
};

const configOf = ({ taskId, pushNotificationConfig: config }) => ({
  task: taskId,
  id: config.id,
  url: config.url,
  secret: config.token || config.authentication?.credentials || '',
});

await run(
  {
    async card() {
      const found = await AgentCardResolver.default.resolve(base);
      return {
        name: found.name,
        version: found.version,
        streaming: Boolean(found.capabilities.streaming),
        skills: found.skills.map((skill) => skill.id),
        interfaces: [
          [found.preferredTransport, found.protocolVersion],
          ...(found.additionalInterfaces ?? []).map((each) => [each.transport, found.protocolVersion]),
        ],
      };
    },
    send,
    stream: async (given) =>
      gather((await client()).sendMessageStream(request(given)), eventOf, reaction(given)),
    resubscribe: async ({ task }) => gather((await client()).resubscribeTask({ id: task }), eventOf),
    get: async ({ task, history }) => taskOf(await (await client()).getTask({ id: task, historyLength: history })),
    cancel,
    hook: async ({ task, url, id, token }) =>
      configOf(await (await client()).setTaskPushNotificationConfig({ taskId: task, pushNotificationConfig: { url, id, token } })),
    hooked: async ({ task, id }) =>
      configOf(await (await client()).getTaskPushNotificationConfig({ id: task, pushNotificationConfigId: id })),
    hooks: async ({ task }) => (await (await client()).listTaskPushNotificationConfig({ id: task })).map(configOf),
    async unhook({ task, id }) {
      await (await client()).deleteTaskPushNotificationConfig({ id: task, pushNotificationConfigId: id });
      return null;
    },
  },
  (error) => error.code ?? error.errorResponse?.error?.code ?? error.statusCode,
);
