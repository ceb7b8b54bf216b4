// The demo: the scripted model mends a small program with real tools; in the middle of its first
// command the host is killed, as by a power cut, and started again. What the session then says is
// compared with a witness that counted by itself. Needs no key and no network.
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';

import { frames } from './demo/frames.mjs';
import { Host } from './demo/host.mjs';
import { Printer, call } from './demo/printer.mjs';
import { CHECK_SECONDS, Sample } from './demo/sample.mjs';
import { which } from './programs.mjs';
import { Failure, bold, dim, green, heading, say, yellow } from './terminal.mjs';

const TASK =
  'The greeting is wrong: `sh check.sh` fails. Find the bug, fix it and run the check again.';
const COMMAND = 'sh check.sh';
const TURN_MS = 120_000;
const REPORT = 'this is a fault of Holdfast; please report it with the lines above.';

/** Runs the demo with these programs; fails when anything is not as promised. */
export async function demo(programs) {
  if (!which('sh')) {
    throw new Failure(
      'The demo runs a shell script, and there is no `sh` here.',
      'on Windows install Git for Windows and start this from Git Bash.',
    );
  }
  const sample = Sample.create(programs.holdfast);
  try {
    await play(programs, sample);
  } catch (error) {
    say(dim(`\nThe project and the session are kept in ${sample.folder}.`));
    throw error;
  }
  rmSync(sample.folder, { recursive: true, force: true });
  say(`\n${green('Done.')} Nothing ran twice by itself, and nothing was guessed.`);
}

async function play(programs, sample) {
  heading('A small project with a bug');
  say(
    `In ${sample.project}. Each check takes ${CHECK_SECONDS} s and adds a line to ${sample.witness}.`,
  );

  const start = () => Host.start(programs, sample.data, sample.project);
  let host = await start();
  const session = await create(host.client, sample.project);
  const query = { session };

  heading('The agent is asked to mend it');
  await untilCheckRuns(host, query, sample);
  await host.kill();
  say(`\n${yellow(`The host (pid ${host.pid}) was killed while \`${COMMAND}\` ran.`)}`);
  say(`The witness: started ${times(sample.runs())}.`);

  heading('The host is started again');
  host = await start();
  await host.client.post('/resume', {}, { sessionId: session });
  await accountFor(host.client, query, sample);

  heading('"continue"');
  await goOn(host.client, query);

  heading('What happened');
  await compare(host.client, query, sample);
  await host.end();
}

async function create(client, workspace) {
  const { sessionId } = await client.post(
    '/sessions',
    {},
    { workspace, title: 'Demo', mode: 'full', model: 'demo/demo' },
  );
  return sessionId;
}

/** Submits `input` once the stream is open, then gives every frame to `onFrame` until it says so. */
async function turn(client, query, input, onFrame) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), TURN_MS);
  try {
    for await (const frame of frames(client, query, stop.signal)) {
      if (frame.kind === 'open') {
        say(`${bold('>')} ${input}\n`);
        await client.post('/submit', query, { input, submissionId: randomUUID() });
      } else if (await onFrame(frame)) {
        return;
      }
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
  throw new Failure(
    stop.signal.aborted
      ? `The turn had not come so far after ${TURN_MS / 1000} s.`
      : 'The event stream ended too early.',
    REPORT,
  );
}

async function untilCheckRuns(host, query, sample) {
  const printer = new Printer();
  await turn(host.client, query, TASK, async (frame) => {
    printer.show(frame);
    if (frame.kind === 'turn_done') {
      throw new Failure(`The turn ended before \`${COMMAND}\` was started.`, REPORT);
    }
    if (frame.kind !== 'tool_started' || frame.tool.args?.command !== COMMAND) {
      return false;
    }
    await until('the command to run', 10_000, async () => sample.runs() > 0);
    return true;
  });
}

/** Shows what the session says after the restart, and waits until its command is accounted for. */
async function accountFor(client, query, sample) {
  const printer = new Printer();
  const items = await showState(client, query, printer);
  const jobs = await client.get('/jobs', query);
  if (jobs.length > 0) {
    say(dim('The command outlived its host, and the new host has found it. Waiting for its end.'));
    await until('the command to end', 30_000, async () => {
      const { backgroundJobs } = await client.get('/status', query);
      return backgroundJobs === 0;
    });
    await showState(client, query, printer);
  } else if (!items.some((item) => item.tool?.args?.command === COMMAND)) {
    throw new Failure('The command is missing in the transcript.', REPORT);
  }
  await resolveUnknown(client, query, sample);
  if (sample.runs() !== 1) {
    throw new Failure(`The check was started ${times(sample.runs())} instead of once.`, REPORT);
  }
  say(`The witness: still started ${times(sample.runs())}. Nothing was run again.`);
}

async function showState(client, query, printer) {
  const status = await client.get('/status', query);
  const recovery = await client.get('/tool-recovery', query);
  const { items } = await client.get('/transcript/page', { ...query, limit: 50 });
  const state = status.runtimeState ?? {};
  say(
    `Status: ${state.phase}, running ${status.running}, background jobs ${status.backgroundJobs}, ` +
      `unresolved ${state.unresolved ?? recovery.calls.length}.`,
  );
  [...items].reverse().forEach((item) => item.tool && printer.tool(item.tool));
  return items;
}

/** What the host can't know, a person decides: here the witness is the person's evidence. */
async function resolveUnknown(client, query, sample) {
  for (;;) {
    const snapshot = await client.get('/tool-recovery', query);
    const [record] = snapshot.calls;
    if (!record) {
      return;
    }
    const attemptId = record.identity.attempt_id;
    const request = (from, inspectionId, action) => ({
      sessionPath: from.sessionPath,
      runtimeEpoch: from.runtimeEpoch,
      revision: from.revision,
      attemptId,
      inspectionId,
      action,
    });
    say(
      `${yellow('?')} The outcome of ${record.identity.canonical_tool} is unknown. Inspecting it.`,
    );
    const seen = await client.post('/tool-recovery', query, request(snapshot, '', 'inspect'));
    const own = seen.calls.find((other) => other.identity.attempt_id === attemptId);
    say(dim(`  inspection: ${own?.inspection_state}`));
    const action = sample.runs() > 0 ? 'confirm' : 'dismiss';
    await client.post('/tool-recovery', query, request(seen, own?.inspection_id ?? '', action));
    say(`  The witness says that it ran ${times(sample.runs())}: ${action}.`);
  }
}

async function goOn(client, query) {
  const printer = new Printer();
  await turn(client, query, 'continue', async (frame) => {
    printer.show(frame);
    if (frame.kind === 'approval_request') {
      const { id, generation } = frame.prompt.approval;
      await client.post('/approve', query, { id, generation, allow: true, scope: 'once' });
      printer.line(dim('  the demo answers for you: yes, once'));
    }
    return frame.kind === 'turn_done';
  });
}

/** The session's own account beside that of the witness. */
async function compare(client, query, sample) {
  const { items } = await client.get('/transcript/page', { ...query, limit: 200 });
  const checks = items.filter(
    (item) => item.tool?.args?.command === COMMAND && item.tool.attemptId && !item.tool.code,
  );
  checks.reverse().forEach(({ tool }) => {
    const exit = typeof tool.exitCode === 'number' ? `, exit ${tool.exitCode}` : '';
    say(`  ${call(tool)}: ${tool.state}${exit} ${dim(`(${tool.resultSource ?? 'no result'})`)}`);
  });
  say(`The session counts ${times(checks.length)}, the witness ${times(sample.runs())}.`);
  if (checks.length !== sample.runs()) {
    throw new Failure('The session and the witness disagree.', REPORT);
  }
  const code = sample.check();
  say(`Checked once more without the agent: exit ${code}.`);
  if (code !== 0) {
    throw new Failure('The bug is still there.', REPORT);
  }
}

const times = (count) => (count === 1 ? 'once' : `${count} times`);

async function until(what, ms, holds) {
  const end = Date.now() + ms;
  while (!(await holds())) {
    if (Date.now() > end) {
      throw new Failure(`Waited ${ms / 1000} s for ${what}, in vain.`, REPORT);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}
