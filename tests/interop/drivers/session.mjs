// The loop around a JavaScript client: one JSON request per line in, one JSON answer per line out.
//
// Runs inside a foreign environment (the working directory holds its node_modules). A request names an operation and
// its arguments; the answer holds `value`, or `error` (the client's own class), `code` (number it carried) and `text`.

import { createRequire } from 'node:module';
import readline from 'node:readline';

// Standard output is for answers; what a client tells the console goes beside them.
console.debug = console.info = console.log = console.error;

export const load = createRequire(process.cwd() + '/');

export async function run(operations, codeOf) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { op, ...given } = JSON.parse(line);
    let answer;
    try {
      answer = { value: await operations[op](given) };
    } catch (error) {
      answer = { error: error.name === 'Error' ? error.constructor.name : error.name, code: codeOf(error) ?? null, text: String(error.message) };
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
}

// Every event of a stream as plain data, and the error that ended it early, if one did. `react` sees each as it comes.
export async function gather(stream, describe, react) {
  const events = [];
  try {
    for await (const item of stream) {
      events.push(describe(item));
      await react?.(events.at(-1), events.length === 1);
    }
  } catch (error) {
    if (events.length === 0) throw error;
    return { events, dropped: error.name };
  }
  return { events, dropped: null };
}

// Members whose value is empty are left out, as the Python drivers do.
export const filled = (members) => Object.fromEntries(Object.entries(members).filter(([, value]) => value));
