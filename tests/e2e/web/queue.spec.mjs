// What is sent while a turn runs waits above the composer, can be changed there, and runs in its order
// (RS-16): with failures on the way, and over a kill.
import { expect, test } from './fixtures.mjs';

const HELD = { text: ['The first answer.'], gate: { name: 'end', after: 0 } };

/** A session whose model does not answer before the gate `end` is released. */
async function running(desk) {
  const { stage } = desk;
  await desk.openFolder(stage.project('errands'));
  await stage.model.push(HELD);
  await desk.say('first');
  await expect(desk.stop).toBeVisible();
  return desk.page.getByRole('region', { name: 'Queue' });
}

async function queue(desk, text) {
  await desk.composer.fill(text);
  await desk.composer.press('Enter');
  await expect(desk.composer).toHaveValue('');
}

/** The texts that wait, in order. */
function waiting(region) {
  return region.locator('[data-item] .text');
}

/** What the person said, as the conversation shows it. */
async function expectSaid(desk, texts) {
  await expect(desk.log.locator('article.user p')).toHaveText(texts);
}

test('rs_16 what is sent during a run waits, is changed by keyboard, and runs in its order', async ({
  desk,
  stage,
}) => {
  const region = await running(desk);
  await expect(desk.composer).toHaveAttribute('placeholder', /waits until this turn is done/);
  for (const text of ['one', 'two', 'three']) {
    await queue(desk, text);
  }
  await expect(region).toContainText('3 messages wait');
  await expect(waiting(region)).toHaveText(['one', 'two', 'three']);

  const edit = region.getByRole('button', { name: 'Edit: two' });
  await edit.press('Enter');
  const words = region.getByRole('textbox', { name: 'Message in the queue' });
  await expect(words).toBeFocused();
  await words.press('Escape');
  await expect(edit, 'Esc leaves the edit and stops no turn').toBeFocused();
  await edit.press('Enter');
  await words.fill('two, better');
  await words.press('Enter');
  await expect(waiting(region)).toHaveText(['one', 'two, better', 'three']);
  const up = region.getByRole('button', { name: 'Move up: three' });
  await up.press('Enter');
  await expect(waiting(region)).toHaveText(['one', 'three', 'two, better']);
  await expect(up, 'the focus goes with what moved').toBeFocused();
  await region.getByRole('button', { name: 'Delete: one' }).press('Enter');
  await expect(waiting(region)).toHaveText(['three', 'two, better']);
  await expect(region.locator(':focus'), 'the focus is not lost').toHaveCount(1);
  await region.getByRole('button', { name: 'Send now: two, better' }).press('Enter');
  await expect(waiting(region)).toHaveText(['two, better', 'three']);

  await stage.model.push({ text: ['To two.'] }, { text: ['To three.'] });
  await stage.model.release('end');
  await expect(desk.log.getByText('To three.')).toBeVisible();
  await expect(region).toHaveCount(0);
  await desk.idle();
  await expectSaid(desk, ['first', 'two, better', 'three']);
});

test('rs_16 an enqueue that fails keeps its draft, and the retry carries the same key', async ({
  desk,
  stage,
  problems,
  page,
}) => {
  const region = await running(desk);
  problems.outage();
  const keys = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/app/enqueue')) {
      keys.push(request.postDataJSON().idempotencyKey);
    }
  });
  await page.route(
    '**/app/enqueue',
    (route) =>
      route.fulfill({
        status: 507,
        json: { code: 'write_failed', message: 'the disk is full; nothing was stored' },
      }),
    { times: 1 },
  );
  await desk.composer.fill('the next thing');
  await desk.composer.press('Enter');
  const alert = page.getByRole('alert').filter({ hasText: 'the disk is full' });
  await expect(alert).toContainText('Your draft is kept');
  await expect(desk.composer).toHaveValue('the next thing');
  await expect(region).toHaveCount(0);
  await desk.composer.press('Enter');
  await expect(desk.composer).toHaveValue('');
  await expect(alert).toHaveCount(0);
  await expect(waiting(region)).toHaveText(['the next thing']);
  expect(keys).toHaveLength(2);
  expect(keys[1]).toBe(keys[0]);
  await stage.model.push({ text: ['Done.'] });
  await stage.model.release('end');
  await expect(desk.log.getByText('Done.')).toBeVisible();
  await expectSaid(desk, ['first', 'the next thing']);
});

test('c24 the reply to an enqueue is lost: its receipt is looked up, and nothing is sent twice', async ({
  desk,
  stage,
  problems,
  page,
}) => {
  const region = await running(desk);
  problems.outage();
  let sent = 0;
  page.on('request', (request) => {
    sent += Number(request.url().endsWith('/app/enqueue'));
  });
  await page.route(
    '**/app/enqueue',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  await desk.composer.fill('only once');
  await desk.composer.press('Enter');
  await expect(desk.composer, 'cleared by the receipt').toHaveValue('');
  await expect(waiting(region)).toHaveText(['only once']);
  await stage.model.push({ text: ['Done.'] });
  await stage.model.release('end');
  await expect(desk.log.getByText('Done.')).toBeVisible();
  await desk.idle();
  await expectSaid(desk, ['first', 'only once']);
  expect(sent).toBe(1);
});

test('c23 behind a kill the queue is paused and marked recovered, and resumes', async ({
  desk,
  stage,
  problems,
}) => {
  const region = await running(desk);
  for (const text of ['one', 'two']) {
    await queue(desk, text);
  }
  await expect(waiting(region)).toHaveText(['one', 'two']);
  problems.outage();
  await stage.kill();
  await stage.start();
  await desk.enter();
  await expect(region).toContainText('2 messages wait');
  await expect(region).toContainText('The program ended while they waited.');
  await expect(region).toContainText('Recovered as it was');
  await expect(desk.status).toContainText('The queue is paused');
  await expect(waiting(region)).toHaveText(['one', 'two']);
  await region.getByRole('button', { name: 'Delete: one' }).click();
  await expect(waiting(region)).toHaveText(['two']);
  // What is said now goes ahead of it.
  await stage.model.push({ text: ['Ahead.'] });
  await desk.say('ahead of it');
  await expect(desk.log.getByText('Ahead.')).toBeVisible();
  await expect(waiting(region)).toHaveText(['two']);
  await stage.model.push({ text: ['To two.'] });
  await region.getByRole('button', { name: 'Resume' }).click();
  await expect(desk.log.getByText('To two.')).toBeVisible();
  await expect(region).toHaveCount(0);
  await desk.idle();
  await expectSaid(desk, ['first', 'ahead of it', 'two']);
});
