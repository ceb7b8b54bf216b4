// The page's beginning: theme and language of the system until the settings are there, the port,
// the desk.

import { mount, unmount } from 'svelte';

import App from './App.svelte';
import { Desk } from './app/desk.svelte';
import './kit/base.css';
import { setLanguage } from './messages/language.svelte';
import Opening from './Opening.svelte';
import { choosePort } from './port/choose';
import { portError } from './port/port';

/** The page's own storage; a browser may refuse it. */
function keeping(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

async function open(target: HTMLElement): Promise<void> {
  const dark = window.matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  setLanguage('system');
  const opening = mount(Opening, { target });
  try {
    const desk = new Desk(await choosePort(), keeping());
    await desk.start();
    await unmount(opening);
    mount(App, { target, props: { desk } });
  } catch (error) {
    await unmount(opening);
    mount(Opening, { target, props: { error: portError(error) } });
  }
}

// A new link opened in the same tab changes nothing but the part behind `#`: no new page by itself.
window.addEventListener('hashchange', () => {
  if (window.location.hash.startsWith('#code=')) {
    window.location.reload();
  }
});

const target = document.getElementById('app');
if (target) {
  void open(target);
}
