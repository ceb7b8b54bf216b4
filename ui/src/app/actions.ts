// What the person can do from the command palette and by keys.

import type { IconName } from '../kit/Icon.svelte';
import { currentLanguage, t } from '../messages/language.svelte';
import { canStop, unresolvedOf } from '../runtime/observed';
import type { Desk } from './desk.svelte';

export interface Action {
  id: string;
  label: string;
  icon: IconName;
  keys?: string;
  run: () => void;
}

export const IS_MAC = /mac/i.test(navigator.userAgent);
const MOD = IS_MAC ? '⌘' : 'Ctrl+';

/** The actions that make sense now. */
export function actionsOf(desk: Desk, parts: { search: () => void; toEnd: () => void }): Action[] {
  const folder = desk.active ?? desk.projects[0];
  const runtime = desk.session?.state;
  const unresolved = unresolvedOf(runtime);
  const list: (Action | false)[] = [
    folder !== undefined && {
      id: 'newSession',
      label: t('action.newSession'),
      icon: 'plus',
      keys: `${MOD}N`,
      run: () => void desk.newSession(folder),
    },
    {
      id: 'openFolder',
      label: t('action.openFolder'),
      icon: 'folder',
      run: () => desk.chooseFolder(),
    },
    canStop(runtime) && {
      id: 'stop',
      label: t('action.stop'),
      icon: 'stop',
      keys: 'Esc',
      run: () => void desk.cancel(),
    },
    unresolved > 0 && {
      id: 'recovery',
      label: t('action.recovery'),
      icon: 'question',
      run: () => desk.openReview(),
    },
    desk.canAct &&
      runtime?.phase === 'idle' && {
        id: 'compact',
        label: t('action.compact'),
        icon: 'archive',
        run: () => void desk.compact(),
      },
    desk.active !== undefined &&
      desk.active.problem === '' && {
        id: 'copySession',
        label: t('action.copySession'),
        icon: 'copy',
        run: () => desk.active && void desk.copy(desk.active),
      },
    { id: 'search', label: t('action.search'), icon: 'search', keys: `${MOD}F`, run: parts.search },
    desk.active !== undefined && {
      id: 'toEnd',
      label: t('action.toEnd'),
      icon: 'end',
      run: parts.toEnd,
    },
    desk.active !== undefined && {
      id: 'closeTab',
      label: t('action.closeTab'),
      icon: 'close',
      keys: `${MOD}W`,
      run: () => void desk.closeTab(desk.activeId),
    },
    {
      id: 'theme',
      label: t('action.theme'),
      icon: 'swap',
      run: () =>
        void desk.saveSettings({
          theme: document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark',
        }),
    },
    {
      id: 'language',
      label: t('action.language'),
      icon: 'globe',
      run: () => void desk.saveSettings({ language: currentLanguage() === 'en' ? 'zh-CN' : 'en' }),
    },
    { id: 'demo', label: t('action.demo'), icon: 'play', run: () => void desk.startDemo() },
    {
      id: 'addHost',
      label: t('action.addHost'),
      icon: 'globe',
      run: () => desk.openHosts(''),
    },
    {
      id: 'settings',
      label: t('action.settings'),
      icon: 'gear',
      keys: `${MOD},`,
      run: () => (desk.surface = 'settings'),
    },
    desk.port.native && {
      id: 'quit',
      label: t('action.quit'),
      icon: 'close',
      keys: `${MOD}Q`,
      run: () => void desk.quit('quit'),
    },
    { id: 'refresh', label: t('action.refresh'), icon: 'refresh', run: () => desk.verify() },
  ];
  return list.filter((action) => action !== false);
}
