// The real window, a folder of the person's own and a scripted model: opened by the window's dialog,
// asked for a change, streamed, approved with its diff, a command watched and stopped, gone on with.
//
// HOLDFAST_APP names the program, HOLDFAST_MODEL_SERVER the scripted model.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { callStep, gatedCommand } from '../model.mjs';
import { Desk, until } from './driver.mjs';

const APP = process.env.HOLDFAST_APP;
const BUGGY = 'greet() {\n  echo "Helo, $1"\n}\n';
const MENDED = 'greet() {\n  echo "Hello, $1"\n}\n';
/** Text long enough that the conversation has to scroll. */
const LONG = Array.from({ length: 60 }, (_, at) => `Line ${at} of a long answer.\n\n`);

let desk;
let browser;
let folder;

before(async () => {
  assert.ok(APP, 'HOLDFAST_APP must name the program; `npm test` does');
  desk = await Desk.create(APP, { scripted: true });
  browser = await desk.open();
});

after(async () => {
  await browser?.deleteSession().catch(() => {});
  await desk?.close();
});

/** The text of what a selector finds, all of it; empty when there is nothing. */
function text(selector) {
  return browser.execute(
    (what) => [...document.querySelectorAll(what)].map((found) => found.innerText).join('\n'),
    selector,
  );
}

function shows(selector, words, what = `${words} in ${selector}`) {
  return until(what, async () => (await text(selector)).includes(words));
}

/** Presses the button with these words, by the page's own names. */
async function press(selector, words) {
  const find = `${selector} button`;
  await until(`the button ${words}`, () =>
    browser.execute(
      (what, name) => {
        const button = [...document.querySelectorAll(what)].find(
          (one) =>
            !one.disabled &&
            (one.getAttribute('aria-label') === name || one.innerText.includes(name)),
        );
        button?.setAttribute('data-pressed', name);
        return button !== undefined;
      },
      find,
      words,
    ),
  );
  const button = await browser.$(`${selector} button[data-pressed="${words}"]`);
  await button.click();
  await browser.execute(
    (what) => document.querySelector(what)?.removeAttribute('data-pressed'),
    `${find}[data-pressed]`,
  );
}

async function say(words) {
  const box = await browser.$('.composer textarea');
  await box.waitForExist();
  await box.click();
  await box.addValue(words);
  await until('the words', async () => (await box.getValue()) === words);
  await press('.composer', 'Send');
  // The message itself may be out of sight already: what is off the screen is not in the page.
  await until('the message to be taken', async () => (await box.getValue()) === '');
}

/** Distance of the conversation from its end, pixels. */
function fromEnd() {
  return browser.execute(() => {
    const log = document.querySelector('[role=log]');
    return {
      below: log.scrollHeight - log.scrollTop - log.clientHeight,
      scrolls: log.scrollHeight > 2 * log.clientHeight,
    };
  });
}

test('a folder is opened by the window’s dialog, and what is no folder is said to be none', async () => {
  folder = desk.project('greeting', { 'greet.sh': BUGGY });
  await press('nav', 'Open a folder');
  const field = await browser.$('dialog input');
  await field.waitForExist();
  // The system's dialog is offered beside it.
  assert.match(await text('dialog'), /Browse…/);
  await field.addValue(path.join(desk.folder, 'nowhere'));
  await press('dialog', 'Open');
  await until('the refusal', async () => (await text('dialog')).length > 0 && refused());
  // A bound value is not changed by WebDriver's own clearing.
  await field.click();
  await browser.keys(['Control', 'a']);
  await browser.keys('Backspace');
  await field.addValue(folder);
  await press('dialog', 'Open');
  await until('the dialog to close', async () => !(await browser.$('dialog').isExisting()));
  await until('the composer', () => browser.$('.composer textarea').isExisting());
  assert.match(await text('nav'), /greeting/);
});

function refused() {
  return browser.execute(() => /nowhere/.test(document.querySelector('dialog').innerText));
}

/** What the marks of the sidebar say. */
function marks() {
  return browser.execute(() =>
    [...document.querySelectorAll('nav li.row [role=img]')].map((mark) =>
      mark.getAttribute('aria-label'),
    ),
  );
}

test('rs_15 one message: the sidebar says that its session works, and is clear when the turn has ended', async () => {
  await desk.model.push({ text: ['Hello ', 'there.'], gate: { name: 'hello', after: 1 } });
  assert.deepEqual(await marks(), []);
  await say('Say hello');
  await until('the mark', async () => (await marks()).includes('writing'));
  await desk.model.release('hello');
  await shows('.status-line', 'Ready');
  await shows('[role=log]', 'Hello there.');
  await until('the marks to go', async () => (await marks()).length === 0);
});

test('a change streams, is approved with its diff, and is in the file', async () => {
  const file = path.join(folder, 'greet.sh');
  await desk.model.push(
    {
      ...callStep(
        'edit_file',
        { path: 'greet.sh', edits: [{ old_text: 'Helo', new_text: 'Hello' }] },
        ['I mend ', 'the ', 'word.'],
      ),
      gate: { name: 'half', after: 2 },
    },
    { text: ['It is mended.'] },
  );
  await say('Mend the greeting');
  // Half of the answer stands there while the other half is held back.
  await until('half of the answer', async () =>
    (await text('.tail article.live')).includes('I mend the'),
  );
  assert.doesNotMatch(await text('.tail article.live'), /word/);
  assert.match(await text('.status-line'), /Writing/);
  await desk.model.release('half');

  await shows('[data-approval]', 'Make this change?');
  assert.match(await text('[data-approval] tr.del'), /Helo/);
  assert.match(await text('[data-approval] tr.add'), /Hello/);
  assert.equal(readFileSync(file, 'utf8'), BUGGY, 'nothing is written before the answer');
  await press('[data-approval]', 'Allow once');
  await shows('[role=log]', 'It is mended.');
  await shows('.status-line', 'Ready');
  assert.equal(readFileSync(file, 'utf8'), MENDED);
});

test('the conversation follows its end while it streams', async () => {
  await desk.model.push({ text: LONG, gate: { name: 'long', after: 50 } });
  await say('Tell me much');
  await shows('.tail article.live', 'Line 49');
  await until('the end in sight', async () => {
    const { below, scrolls } = await fromEnd();
    return scrolls && below < 24;
  });
  await desk.model.release('long');
  await shows('.status-line', 'Ready');
  await shows('[role=log]', 'Line 59');
  await until('the end in sight, after it', async () => (await fromEnd()).below < 24);
});

test('a command is watched, stopped, and the work goes on', async () => {
  await desk.model.push(callStep('shell', { command: gatedCommand(desk, 'long') }));
  await say('Run it');
  await shows('[data-approval]', 'Run this command?');
  await press('[data-approval]', 'Allow once');
  await until('the command', () => existsSync(desk.beside('long-began')));
  // Its output is on screen while it runs.
  await shows('[data-card]:not([data-approval])', 'at work');
  await shows('.status-line', 'Running');
  await press('.composer', 'Stop');
  await shows('[role=log]', 'Stopped by you');
  await until('the state', async () => /stopped/.test(await text('[data-card] .state')));
  await shows('.status-line', 'Ready');
  assert.equal(await text('.banner'), '', 'a stopped command blocks nothing');
  assert.equal(existsSync(desk.beside('long-effect')), false, 'it did nothing more');

  await desk.model.push(callStep('write_file', { path: 'note.txt', content: 'went on\n' }), {
    text: ['It is written.'],
  });
  await say('Write the note');
  await shows('[data-approval]', 'note.txt');
  await press('[data-approval]', 'Allow once');
  await shows('[role=log]', 'It is written.');
  assert.equal(readFileSync(path.join(folder, 'note.txt'), 'utf8'), 'went on\n');
});
