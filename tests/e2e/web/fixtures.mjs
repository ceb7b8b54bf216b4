// The fixtures of the browser tests and the words for what a person does.
//
// Guarantee: a test whose page threw, logged an error, broke its content security policy or had a
// request fail is a failed test, unless it said before that the backend will be gone.
import { test as base, expect } from '@playwright/test';

import { callStep, gatedCommand } from '../model.mjs';
import { Stage } from './stage.mjs';

export { expect };
export { callStep, gatedCommand };

/** The page as a person sees it. */
export class DeskPage {
  constructor(page, stage, problems) {
    this.page = page;
    this.stage = stage;
    this.problems = problems;
    this.projects = page.getByRole('navigation', { name: 'Projects' });
    this.composer = page.getByRole('textbox', { name: 'Message' });
    this.send = page.getByRole('button', { name: 'Send' });
    this.stop = page.getByRole('button', { name: /^Stop( |$)|^StopEsc$/ });
    this.approval = page.locator('[data-approval]');
    this.allow = this.approval.locator('.primary');
    this.cards = page.locator('[data-card]:not([data-approval])');
    this.status = page.locator('.status-line');
    this.log = page.getByRole('log');
    this.tabs = page.getByRole('tab');
    this.panel = page.locator('aside[aria-label="Unknown outcomes"]');
    this.banner = page.getByRole('status').filter({ hasText: /with an unknown outcome block/ });
    this.unsynced = page.getByText(/^Not synced: this is the last known state/);
  }

  /** Adds a folder by its path; its first session opens. */
  async openFolder(folder) {
    const before = await this.tabs.count();
    await this.projects.getByRole('button', { name: 'Open a folder' }).click();
    const dialog = this.page.getByRole('dialog', { name: 'Open a folder' });
    await dialog.getByRole('textbox').fill(folder);
    await dialog.getByRole('button', { name: 'Open' }).click();
    await expect(dialog).toBeHidden();
    await expect(this.tabs).toHaveCount(before + 1);
    await expect(this.composer).toBeVisible();
  }

  async say(text) {
    await this.composer.fill(text);
    await this.composer.press('Enter');
    await expect(this.log.getByText(text, { exact: true })).toBeVisible();
  }

  /** Allows what is asked now, once; its subject contains the text. */
  async allowOnce(text) {
    await expect(this.approval).toContainText(text);
    await this.allow.click();
    await expect(this.approval.filter({ hasText: text })).toHaveCount(0);
  }

  card(text) {
    return this.cards.filter({ hasText: text });
  }

  /** The word that says what is known of a call. */
  stateOf(card) {
    return card.locator('.state');
  }

  async idle() {
    await expect(this.status).toContainText('Ready');
    await expect(this.stop).toHaveCount(0);
  }

  /** Runs an action of the command palette by its name. */
  async act(name) {
    await this.page.keyboard.press('Control+k');
    const palette = this.page.getByRole('dialog', { name: 'Commands' });
    await palette.getByRole('combobox').fill(name);
    await this.page.keyboard.press('Enter');
    await expect(palette).toBeHidden();
  }

  /** Opens the page again by a link, as a person does after a new start. */
  async enter() {
    await this.page.goto(this.stage.link);
    await expect(this.projects).toBeVisible();
  }
}

export const test = base.extend({
  /** false: a machine on which nothing was set up. */
  configured: [true, { option: true }],
  /** A wire between page and program, `stage.wire`, that a test can cut. */
  wired: [false, { option: true }],
  /** A way between page and program, `stage.frames`, on which a test decides what the page hears. */
  framed: [false, { option: true }],
  /** More environment for the program. */
  env: [{}, { option: true }],

  // Playwright reads the names of what a fixture needs from this pattern.
  stage: async ({ configured, wired, framed, env }, use) => {
    const stage = await Stage.create({ configured, env });
    if (wired) {
      await stage.throughWire();
    }
    if (framed) {
      await stage.throughFrames();
    }
    await use(stage);
    await stage.close();
  },

  /** What went wrong in the page; `outage()` says that requests may fail from now on. */
  problems: async ({ page }, use) => {
    const seen = [];
    let outage = false;
    page.on('pageerror', (error) => seen.push(`thrown: ${error.message}`));
    page.on('console', (line) => {
      const isNetwork = /Failed to load resource/.test(line.text());
      if (line.type() === 'error' && !(outage && isNetwork)) {
        seen.push(`console: ${line.text()}`);
      }
    });
    page.on('requestfailed', (request) => {
      // What is under way ends with its page, at a reload too.
      const why = request.failure()?.errorText;
      if (!outage && why !== 'net::ERR_ABORTED') {
        seen.push(`request: ${request.url()} ${why}`);
      }
    });
    page.on('response', (response) => {
      if (!outage && response.status() >= 400) {
        seen.push(`response: ${response.url()} ${response.status()}`);
      }
    });
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
    });
    await use({
      seen,
      outage() {
        outage = true;
      },
    });
    expect(seen).toEqual([]);
  },

  /** The page after it was let in by its link. */
  desk: async ({ page, stage, problems }, use) => {
    const desk = new DeskPage(page, stage, problems);
    await page.goto(stage.link);
    await expect(desk.projects).toBeVisible();
    await use(desk);
  },
});

/** A session whose command's outcome is unknown, and whose processes have all ended. */
export async function leaveUnknown(desk, name) {
  const { stage } = desk;
  await desk.openFolder(stage.project(name));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, name) }));
  await desk.say(`Run ${name}`);
  await desk.allowOnce(`${name}-began`);
  await stage.untilThere(`${name}-began`);
}

/** Kills host and supervisors, lets the commands of these names end, and starts the host again. */
export async function crash(desk, ...names) {
  const { stage, problems } = desk;
  problems.outage();
  await stage.kill();
  stage.killSupervisors();
  for (const name of names) {
    stage.write(`${name}-gate`);
    await stage.untilThere(`${name}-effect`);
  }
  await stage.start();
  await desk.enter();
}
