// The real window, driven as a person drives it: the demo task from the first click to the mended
// program, a restart in which nothing is lost, and what the page may not do.
//
// HOLDFAST_APP names the program; HOLDFAST_SCREENSHOT, when set, gets a picture of the finished task.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { Desk, TURN_MS, until } from './driver.mjs';

const APP = process.env.HOLDFAST_APP;
const DRAFT = 'half a thought, kept for later';

let desk;
let browser;

before(async () => {
  assert.ok(APP, 'HOLDFAST_APP must name the program; `npm test` does');
  desk = await Desk.create(APP);
  browser = await desk.open();
});

after(async () => {
  await browser?.deleteSession().catch(() => {});
  await desk?.close();
});

/** Calls the backend as the page does. */
function call(command, request = {}) {
  return browser.executeAsync(
    (name, argument, done) => {
      window.__TAURI_INTERNALS__.invoke(name, { request: argument }).then(
        (reply) => done({ reply }),
        // A key named `error` would be taken for one of the driver's own.
        (refusal) => done({ refusal }),
      );
    },
    command,
    request,
  );
}

/** The one session's row of the projection. */
async function session() {
  const { reply } = await call('get_runtime_state_snapshot');
  return reply?.sessions.find(({ open }) => open);
}

async function pageText() {
  return browser.execute(() => document.body.innerText);
}

/** Answers every question with "Allow once" until the turn has ended. */
async function allowUntilDone(turn) {
  await until(
    'the turn to end',
    async () => {
      const question = await browser.$('[data-approval] footer button');
      if (await question.isExisting()) {
        // It may be answered and gone by the time of the click.
        await question.click().catch(() => {});
      }
      const { state } = await session();
      return state.turnId !== turn && state.phase === 'idle' && state.turnStatus !== 'in_progress';
    },
    TURN_MS,
  );
}

test('the demo task runs from the first click to a mended program', async () => {
  await browser.$('button*=Try the demo').click();
  const box = await browser.$('.composer textarea');
  await box.waitForExist();
  await until('the task in the composer', () => box.getValue());
  const { workspaceRoot, state } = await until('the session', session);
  const check = () => spawnSync('sh', ['check.sh'], { cwd: workspaceRoot }).status;
  assert.notEqual(check(), 0, 'the sample project must begin with a bug');

  await browser.$('button[aria-label="Send"]').click();
  await allowUntilDone(state.turnId);

  const ended = await session();
  assert.equal(ended.state.turnStatus, 'completed');
  assert.equal(ended.state.unresolved, 0);
  assert.equal(check(), 0, 'the program is mended');
  const text = await pageText();
  assert.match(text, /check\.sh/);
  if (process.env.HOLDFAST_SCREENSHOT) {
    // The driver's own picture never comes without a compositor; the screen shows the same.
    const taken = spawnSync('import', ['-window', 'root', process.env.HOLDFAST_SCREENSHOT]);
    assert.equal(taken.status, 0, 'ImageMagick takes the picture');
  }
});

test('a restart brings back the tab, the transcript and the draft', async () => {
  const box = await browser.$('.composer textarea');
  await box.click();
  await box.addValue(DRAFT);
  await until('the draft to be stored', async () => {
    const { reply } = await call('get_layout');
    return reply.tabs[0].draft === DRAFT;
  });
  const earlier = await session();
  await browser.deleteSession();

  browser = await desk.open();
  const restored = await browser.$('.composer textarea');
  await restored.waitForExist();
  await until('the draft', async () => (await restored.getValue()) === DRAFT);
  const now = await until('the session', session);
  assert.equal(now.sessionPath, earlier.sessionPath);
  assert.equal(now.tabId, earlier.tabId);
  await until('the transcript', async () => /check\.sh/.test(await pageText()));
});

test('c02 killed in the middle of a command, the window comes back with its real result', async () => {
  const { reply: tab } = await call('start_demo');
  const runs = path.join(desk.folder, 'runs');
  const check = path.join(tab.workspaceRoot, 'check.sh');
  const [first, ...rest] = readFileSync(check, 'utf8').split('\n');
  writeFileSync(check, [first, `echo run >> '${runs}'`, 'sleep 4', ...rest].join('\n'));
  const command = async () => {
    const { reply } = await call('transcript_snapshot', { tabId: tab.tabId });
    return reply?.items.find(({ tool }) => tool?.name === 'shell')?.tool;
  };

  await call('submit', { tabId: tab.tabId, input: tab.draft, submissionId: 'demo-again' });
  const question = await until('the question', async () => {
    const { reply } = await call('pending_prompts', { tabId: tab.tabId });
    return reply?.[0]?.approval;
  });
  const { id, generation } = question;
  await call('approve', {
    tabId: tab.tabId,
    id,
    generation,
    allow: true,
    scope: 'once',
    reason: '',
  });
  await until('the command to run', () => existsSync(runs));
  const draft = 'written before the end';
  await call('save_draft', { tabId: tab.tabId, text: draft });
  desk.kill();
  await browser.deleteSession().catch(() => {});

  browser = await desk.open();
  const found = await until('the real result', async () => {
    const tool = await command();
    return tool?.resultSource === 'recovered' && tool;
  });
  assert.equal(found.state, 'failed');
  assert.equal(found.exitCode, 1);
  assert.equal(readFileSync(runs, 'utf8'), 'run\n', 'the command ran once');
  const { reply: layout } = await call('get_layout');
  assert.equal(layout.tabs.find(({ tabId }) => tabId === tab.tabId)?.draft, draft);
  const { reply: now } = await call('get_runtime_state_snapshot');
  const row = now.sessions.find(({ tabId }) => tabId === tab.tabId);
  assert.equal(row.state.phase, 'idle');
  assert.equal(row.state.turnStatus, 'interrupted');
  assert.equal(row.state.unresolved, 0);
});

test('the page runs no foreign script, reaches no address, and calls only what is granted', async () => {
  const inline = await browser.execute(() => {
    const script = document.createElement('script');
    script.textContent = 'window.foreign = true';
    document.head.append(script);
    return window.foreign === true;
  });
  assert.equal(inline, false, 'an inline script ran');
  const reached = await browser.executeAsync((address, done) => {
    fetch(address, { mode: 'no-cors' }).then(
      () => done('reached'),
      (error) => done(error.name),
    );
  }, desk.address);
  assert.equal(reached, 'TypeError');
  for (const command of ['plugin:opener|open_path', 'plugin:dialog|open', 'plugin:window|close']) {
    const { refusal } = await call(command);
    assert.match(String(refusal), /not allowed/, command);
  }
});
