// SV-09 in the real window: quitting while a command runs asks what becomes of it.
//
// HOLDFAST_APP names the program, HOLDFAST_MODEL_SERVER the scripted model.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { after, afterEach, before, test } from 'node:test';

import { callStep, gatedCommand } from '../model.mjs';
import { Desk, until } from './driver.mjs';

const APP = process.env.HOLDFAST_APP;

let desk;
let browser;

before(async () => {
  assert.ok(APP, 'HOLDFAST_APP must name the program; `npm test` does');
  desk = await Desk.create(APP, { scripted: true });
});

after(async () => {
  await browser?.deleteSession().catch(() => {});
  await desk?.close();
});

afterEach(async () => {
  // The driver has one window at a time.
  await browser?.deleteSession().catch(() => {});
  await until('the window to close', () => !desk.runs());
});

/** Calls the backend as the page does. */
function call(command, request = {}) {
  return browser.executeAsync(
    (name, argument, done) => {
      window.__TAURI_INTERNALS__.invoke(name, { request: argument }).then(
        (reply) => done({ reply }),
        (refusal) => done({ refusal }),
      );
    },
    command,
    request,
  );
}

/** Opens the window with a session at work on a command that waits for its gate. */
async function atWork(name) {
  browser = await desk.open();
  const command = gatedCommand(desk, name);
  await desk.model.push(callStep('shell', { command }));
  const workspaceRoot = desk.project(name);
  const { reply: tab } = await call('new_session', { workspaceRoot, model: '', mode: 'full' });
  await call('submit', { tabId: tab.tabId, input: name, submissionId: name });
  await until('the command', () => existsSync(desk.beside(`${name}-began`)));
  return tab;
}

async function tool(tab) {
  const { reply } = await call('transcript_snapshot', { tabId: tab.tabId });
  return reply?.items.find((item) => item.tool)?.tool;
}

/** Waits until the app has left, and lets the driver forget it. */
async function left() {
  await until('the window to close', () => !desk.runs());
  await browser.deleteSession().catch(() => {});
}

async function askedByKey(words) {
  await browser.keys(['Control', 'q']);
  const dialog = await browser.$('[data-quit]');
  await dialog.waitForExist();
  // The driver leaves out what a line is too short for; a person sees its beginning.
  const shown = await browser.execute(() => {
    const command = document.querySelector('[data-quit] code');
    return command.getBoundingClientRect().height > 0 && command.textContent;
  });
  assert.ok(String(shown).includes(words), String(shown));
  return dialog;
}

test('sv_09 the window asks; cancelled it stays, kept the command goes on', async () => {
  const tab = await atWork('kept');
  const dialog = await askedByKey('kept-effect');
  const focus = () => browser.execute(() => document.activeElement?.textContent?.trim());
  assert.equal(await focus(), 'Keep running and quit');
  await browser.keys(['Escape']);
  await dialog.waitForExist({ reverse: true });
  assert.equal((await tool(tab)).state, 'in_flight');

  await askedByKey('kept-effect');
  // The window may be gone before the driver has its answer.
  await browser.keys(['Enter']).catch(() => {});
  await left();
  writeFileSync(desk.beside('kept-gate'), '');
  browser = await desk.open();
  const found = await until('the real result', async () => {
    const now = await tool(tab);
    return now?.resultSource === 'recovered' && now;
  });
  assert.equal(found.state, 'completed');
  assert.match(found.output, /over/);
});

test('sv_09 stopped, the command has its real outcome before the window is gone', async () => {
  const tab = await atWork('stopped');
  const dialog = await askedByKey('stopped-effect');
  await dialog
    .$('button*=Stop and quit')
    .click()
    .catch(() => {});
  await left();
  browser = await desk.open();
  assert.equal((await tool(tab)).state, 'interrupted');
});

test('sv_09 a second wish to quit is the default, and with nothing running nobody is asked', async () => {
  await atWork('twice');
  await askedByKey('twice-effect');
  await call('quit', { word: 'quit' }).catch(() => {});
  await left();
  writeFileSync(desk.beside('twice-gate'), '');
  browser = await desk.open();
  await until('nothing to run', async () => {
    const { reply } = await call('get_runtime_state_snapshot');
    const busy = ({ state }) => state.running || state.backgroundJobs > 0;
    return reply?.sessions.length > 0 && !reply.sessions.some(busy);
  });
  await browser.keys(['Control', 'q']).catch(() => {});
  await left();
});
