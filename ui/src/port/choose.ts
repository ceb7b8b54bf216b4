// Which port this page has: the window's, or the browser's.

import { createHttpPort } from './http';
import type { Port } from './port';

export async function choosePort(): Promise<Port> {
  if ('__TAURI_INTERNALS__' in window) {
    const { createTauriPort } = await import('./tauri');
    return createTauriPort();
  }
  return createHttpPort({
    fetch: window.fetch.bind(window),
    storage: window.sessionStorage,
    hash: window.location.hash,
    clearHash: () =>
      window.history.replaceState(null, '', window.location.pathname + window.location.search),
    open: (url) => void window.open(url, '_blank', 'noopener,noreferrer'),
  });
}
