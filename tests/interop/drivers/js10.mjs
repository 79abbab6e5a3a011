// Drives an agent with the official JavaScript client, @a2a-js/sdk 1.x.
//
//     node js10.mjs BASE_URL BINDING [PATH]      BINDING: JSONRPC | HTTP+JSON; PATH: keep to the interface there

import { randomUUID } from 'node:crypto';
import { filled, gather, load, run } from './session.mjs';

const { AgentCardResolver, ClientFactory, ClientFactoryOptions } = load('@a2a-js/sdk/client');
const { Role, TaskState, generateAgentCardSignature, verifyAgentCardSignature } = load('@a2a-js/sdk');
const [base, binding, path] = process.argv.slice(2);

const factory = new ClientFactory(
  ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [binding] }),
);
let connected;
const client = () => (connected ??= path ? there() : factory.createFromUrl(base));

async function there() {
  const card = await AgentCardResolver.default.resolve(base);
  card.supportedInterfaces = card.supportedInterfaces.filter((each) => new URL(each.url).pathname === path);
  return factory.createFromAgentCard(card);
}

const state = (value) => TaskState[value].replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');

function readPart(part) {
  const { $case: kind, value } = part.content;
  return {
    [kind]: kind === 'raw' ? Buffer.from(value).toString('base64') : value,
    ...filled({ media_type: part.mediaType, filename: part.filename }),
  };
}

function makePart(plain) {
  const $case = ['text', 'raw', 'url', 'data'].find((kind) => kind in plain);
  const value = $case === 'raw' ? Buffer.from(plain.raw, 'base64') : plain[$case];
  return {
    content: { $case, value },
    mediaType: plain.media_type ?? '',
    filename: plain.filename ?? '',
    metadata: undefined,
  };
}

const partsOf = (value) => (value?.parts ?? []).map(readPart);

const taskOf = (task) => ({
  kind: 'task',
  task: task.id,
  context: task.contextId,
  state: state(task.status.state),
  said: partsOf(task.status.message),
  artifacts: task.artifacts.map((each) => ({ name: each.name, parts: partsOf(each) })),
  history: task.history.map((each) => ({ role: each.role === Role.ROLE_USER ? 'user' : 'agent', parts: partsOf(each) })),
});

const messageOf = (message) => ({ kind: 'message', task: message.taskId, parts: partsOf(message) });

function eventOf({ payload: { $case: kind, value } }) {
  if (kind === 'task') return taskOf(value);
  if (kind === 'message') return messageOf(value);
  if (kind === 'statusUpdate') {
    return { kind: 'status', task: value.taskId, state: state(value.status.state), said: partsOf(value.status.message) };
  }
  return {
    kind: 'artifact',
    task: value.taskId,
    artifact: value.artifact.artifactId,
    parts: partsOf(value.artifact),
    append: value.append,
    last: value.lastChunk,
  };
}

const request = ({ parts, task = '', context = '', wait = true }) => ({
  tenant: '',
  message: {
    messageId: randomUUID(),
    role: Role.ROLE_USER,
    parts: parts.map(makePart),
    taskId: task,
    contextId: context,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: !wait },
  metadata: undefined,
});

const cancel = async ({ task }) => taskOf(await (await client()).cancelTask({ tenant: '', id: task, metadata: undefined }));

async function send(given) {
  const result = await (await client()).sendMessage(request(given));
  return 'status' in result ? taskOf(result) : messageOf(result);
}

// What is done while a stream is read: cancel its task at once, or answer its question.
const reaction = ({ cancel_it, answer }) => async (event, first) => {
  if (cancel_it && first) await cancel(event);
  if (answer && event.state === 'input-required') await send({ parts: answer, task: event.task });
};

const configOf = (value) => ({
  task: value.taskId,
  id: value.id,
  url: value.url,
  secret: value.token || value.authentication?.credentials || '',
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
        interfaces: found.supportedInterfaces.map((each) => [each.protocolBinding, each.protocolVersion]),
      };
    },
    send,
    stream: async (given) =>
      gather((await client()).sendMessageStream(request(given)), eventOf, reaction(given)),
    resubscribe: async ({ task }) => gather((await client()).resubscribeTask({ tenant: '', id: task }), eventOf),
    get: async ({ task, history }) => taskOf(await (await client()).getTask({ tenant: '', id: task, historyLength: history })),
    cancel,
    async sign({ card, key, jku }) {
      const head = { alg: key.alg, kid: key.kid, typ: 'JOSE', ...filled({ jku }) };
      return generateAgentCardSignature(key, head)(card);
    },
    async verify({ card, keys }) {
      await verifyAgentCardSignature(async (kid) => keys.find((key) => key.kid === kid))(card);
      return true;
    },
    hook: async ({ task, url, id, token }) =>
      configOf(
        await (await client()).createTaskPushNotificationConfig({ tenant: '', taskId: task, id, url, token, authentication: undefined }),
      ),
    hooked: async ({ task, id }) => configOf(await (await client()).getTaskPushNotificationConfig({ tenant: '', taskId: task, id })),
    hooks: async ({ task }) =>
      (await (await client()).listTaskPushNotificationConfig({ tenant: '', taskId: task, pageSize: 0, pageToken: '' })).configs.map(configOf),
    async unhook({ task, id }) {
      await (await client()).deleteTaskPushNotificationConfig({ tenant: '', taskId: task, id });
      return null;
    },
    async list({ context, size, token = '', artifacts = false }) {
      const page = await (await client()).listTasks({
        tenant: '',
        contextId: context,
        status: TaskState.TASK_STATE_UNSPECIFIED,
        pageSize: size,
        pageToken: token,
        includeArtifacts: artifacts,
        statusTimestampAfter: undefined,
      });
      return { tasks: page.tasks.map(taskOf), next: page.nextPageToken, total: page.totalSize };
    },
  },
  (error) => error.envelopeCode ?? error.statusCode,
);
