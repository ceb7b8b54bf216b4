// The port of the native window. The only file that imports `@tauri-apps`.

import { invoke } from '@tauri-apps/api/core';
import { listen } from '@tauri-apps/api/event';
import { openUrl } from '@tauri-apps/plugin-opener';

import type { AppEvent, QuitQuestion } from './contract';
import { operationsOver, portError, type Port } from './port';

const EVENTS: readonly AppEvent['event'][] = [
  'runtime-state:changed',
  'desktop:resync',
  'remote-tab:updated',
  'session:frames',
];

export function createTauriPort(): Port {
  const call = (operation: string, request: unknown) =>
    invoke(operation, { request }).catch((error: unknown) => {
      throw portError(error);
    });
  return {
    ...operationsOver(call),
    native: true,
    async events(listener, link) {
      const stops = await Promise.all(
        EVENTS.map((event) =>
          listen(event, ({ payload }) => listener({ event, payload } as AppEvent)),
        ),
      );
      link('up');
      return () => stops.forEach((stop) => stop());
    },
    pickFolder: () =>
      invoke<string | null>('pick_folder').catch((error: unknown) => {
        throw portError(error);
      }),
    quits: (listener) => listen<QuitQuestion>('quit:asked', ({ payload }) => listener(payload)),
    quit: (word) =>
      invoke<void>('quit', { request: { word } }).catch((error: unknown) => {
        throw portError(error);
      }),
    openLink: (url) => openUrl(url),
  };
}
