// The page's model: tabs, projects, settings, and what each tab shows. It owns no state of sessions:
// that is the runtime mirror's.

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import { Outbox, type Keep } from '../composer/outbox.svelte';
import { Queues } from '../composer/queue.svelte';
import { setLanguage } from '../messages/language.svelte';
import type {
  AppEvent,
  ModelView,
  NumberedFrame,
  ProjectList,
  ProjectView,
  QuitQuestion,
  QuitWord,
  RemoteTab,
  Settings,
  TabView,
  Topic,
  TranscriptItem,
} from '../port/contract';
import type { Link, Port } from '../port/port';
import { Review } from '../recovery/review.svelte';
import { canStop, turnOf } from '../runtime/observed';
import { createRuntimeStore } from '../runtime/store';
import { createRuntimeSync } from '../runtime/sync';
import { Conversation } from '../transcript/conversation.svelte';
import { Hosts } from './hosts.svelte';
import { RuntimeMirror, type Place } from './runtime.svelte';
import { Toasts } from './toasts.svelte';

export type Surface =
  'none' | 'palette' | 'settings' | 'providers' | 'hosts' | 'folder' | 'hostFolder' | 'jobs';

/** A folder of a machine; empty for this one. */
export interface Folder {
  hostId: string;
  workspaceRoot: string;
}

export class Desk {
  readonly port: Port;
  readonly runtime = new RuntimeMirror();
  readonly toasts = new Toasts();
  readonly outbox: Outbox;
  readonly queues: Queues;
  readonly review: Review;
  readonly hosts: Hosts;

  readonly #conversations = new SvelteMap<string, Conversation>();
  tabs = $state.raw<TabView[]>([]);
  activeId = $state('');
  projects = $state.raw<ProjectView[]>([]);
  models = $state.raw<ModelView[]>([]);
  settings = $state.raw<Settings | null>(null);
  surface = $state<Surface>('none');
  /** SV-09: the window is to close while these commands run. */
  quitting = $state.raw<QuitQuestion | null>(null);
  /** A message that the person may take back, with all that follows it. */
  rewinding = $state.raw<TranscriptItem | null>(null);
  /** What the page of hosts opens with: a host's id, empty for a new one, `null` for the list. */
  hostForm = $state<string | null>(null);
  /** The host that a new session's folder is asked for. */
  hostAsked = $state('');
  /** The recovery panel of the active tab is open. */
  reviewing = $state(false);
  ready = $state(false);
  /** The backend answers, and no longer knows this page. */
  refused = $state(false);

  readonly active = $derived(this.tabs.find((tab) => tab.tabId === this.activeId));
  readonly conversation = $derived(this.#conversations.get(this.activeId));
  /** The active tab's session in the projection. */
  readonly session = $derived(this.runtime.session(this.activeId));
  /** What waits in the active tab's session, when something does. */
  readonly queue = $derived.by(() => {
    const view = this.queues.view(this.activeId);
    return view && view.items.length > 0 ? view : undefined;
  });
  /** Send and Stop may be used (RS-15, RS-25). */
  readonly canAct = $derived.by(
    () =>
      this.active?.problem === '' &&
      this.runtime.confirmed(this.session?.freshness) &&
      !this.hosts.isAway(this.active.hostId),
  );

  readonly #store = createRuntimeStore();
  readonly #sync;
  #rereading: ReturnType<typeof setTimeout> | undefined;
  #stop: () => void = () => undefined;

  constructor(port: Port, keep: Keep | null = null) {
    this.port = port;
    this.outbox = new Outbox(port, keep);
    this.queues = new Queues(port);
    this.review = new Review(port);
    this.hosts = new Hosts(port);
    this.#sync = createRuntimeSync(this.#store, {
      sync: () => port.syncRuntimeState(),
      get: () => port.getRuntimeStateSnapshot(),
    });
  }

  /** RS-22: subscribes first, then reads. */
  async start(): Promise<void> {
    const unsubscribe = this.#store.subscribe((view) => {
      const before = this.runtime.view;
      this.runtime.view = view;
      const wait = this.#sync.retryIn;
      this.runtime.retryAt = view.failed && wait !== null ? Date.now() + wait : null;
      if (view.topics !== before.topics && !sameRows(view.topics, before.topics)) {
        this.#rereadSoon();
      }
    });
    const stopEvents = await this.port.events(
      (event) => this.#event(event),
      (link) => this.#link(link),
    );
    const stopQuits = await this.port.quits((question) => {
      this.quitting = question;
      // Without this word the window does not wait for an answer.
      void this.attempt(() => this.port.quit('shown'));
    });
    const verify = () => this.#sync.verify();
    const flush = () => this.outbox.flush();
    window.addEventListener('focus', verify);
    window.addEventListener('online', verify);
    window.addEventListener('pagehide', flush);
    this.#stop = () => {
      unsubscribe();
      stopEvents();
      stopQuits();
      this.#sync.stop();
      window.removeEventListener('focus', verify);
      window.removeEventListener('online', verify);
      window.removeEventListener('pagehide', flush);
    };
    this.#sync.start();
    // Nothing waits for it: a keychain may ask before it says what it holds.
    void this.hosts.load();
    const [settings] = await Promise.all([
      this.port.getSettings(),
      this.rereadLayout(true),
      this.rereadProjects(),
      this.rereadModels(),
    ]);
    this.use(settings);
    this.ready = true;
  }

  stop(): void {
    this.#stop();
  }

  /** Reads the state again, now. */
  verify(): void {
    this.#sync.verify();
  }

  /** Runs something that the backend may refuse, and shows what it said. */
  async attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.toasts.error(error);
      return undefined;
    }
  }

  async rereadLayout(first = false): Promise<void> {
    const layout = await this.port.getLayout();
    this.#tabs(layout.tabs);
    if (first || !this.tabs.some((tab) => tab.tabId === this.activeId)) {
      this.#show(layout.active || (layout.tabs[0]?.tabId ?? ''));
    }
  }

  async rereadProjects(): Promise<void> {
    this.projects = (await this.port.listProjects()).projects;
  }

  async rereadModels(): Promise<void> {
    this.models = (await this.port.listModels()).models;
  }

  select(tabId: string): void {
    if (tabId !== this.activeId) {
      this.outbox.flush();
      this.#show(tabId);
      void this.attempt(() => this.port.selectTab({ tabId }));
    }
  }

  async open({ hostId, sessionId }: Place): Promise<void> {
    const known = this.tabs.find((tab) => tab.sessionId === sessionId && tab.hostId === hostId);
    if (known) {
      this.select(known.tabId);
    } else {
      await this.#opened(() => this.port.openSession({ sessionId, hostId }));
    }
  }

  /** A session in a folder of a machine; of a tab or a project, one beside it. */
  async newSession(folder: Folder): Promise<void> {
    await this.attempt(() => this.begin(folder));
  }

  /** The same, for who shows a refusal in its own place: it is thrown. */
  async begin({ hostId, workspaceRoot }: Folder): Promise<void> {
    await this.#shown(await this.port.newSession({ workspaceRoot, hostId, model: '', mode: '' }));
  }

  async startDemo(): Promise<void> {
    await this.#opened(() => this.port.startDemo());
  }

  async closeTab(tabId: string): Promise<void> {
    this.outbox.flush();
    const at = this.tabs.findIndex((tab) => tab.tabId === tabId);
    const layout = await this.attempt(() => this.port.closeTab({ tabId }));
    if (layout) {
      this.outbox.forget(tabId);
      this.#tabs(layout.tabs);
      if (this.activeId === tabId) {
        const next =
          layout.active || (layout.tabs[Math.min(at, layout.tabs.length - 1)]?.tabId ?? '');
        this.#show(next);
      }
    }
  }

  /** Asks for a folder: by its path, or in the window by the system's dialog. */
  chooseFolder(): void {
    this.surface = 'folder';
  }

  /** The page of hosts: its list, a form for a new one (`''`), or that of one of them. */
  openHosts(form: string | null = null): void {
    this.hostForm = form;
    this.surface = 'hosts';
  }

  /** Asks for the folder of a new session over there. */
  askFolderOn(hostId: string): void {
    this.hostAsked = hostId;
    this.surface = 'hostFolder';
  }

  /** A host is gone from the list, and with it its tabs and rows. */
  async removeHost(hostId: string): Promise<void> {
    await this.attempt(async () => {
      await this.hosts.remove(hostId);
      for (const tab of this.tabs.filter((one) => one.hostId === hostId)) {
        this.outbox.forget(tab.tabId);
      }
    });
    await this.attempt(() => Promise.all([this.rereadLayout(), this.rereadProjects()]));
  }

  /** Shows the list after a folder was added; a folder without sessions gets its first one. */
  async opened(list: ProjectList, path: string): Promise<void> {
    const own = (projects: readonly ProjectView[]) =>
      projects.filter(({ hostId }) => hostId === '');
    const before = new Set(own(this.projects).map((project) => project.workspaceRoot));
    this.projects = list.projects;
    const added =
      own(list.projects).find((project) => !before.has(project.workspaceRoot)) ??
      own(list.projects).find((project) => project.workspaceRoot === path);
    if (added && added.sessions.length === 0) {
      await this.newSession(added);
    }
  }

  async change(
    { hostId, sessionId }: Place,
    change: { title?: string; mode?: string; model?: string; archived?: boolean },
  ): Promise<void> {
    await this.attempt(() => this.port.changeSession({ sessionId, hostId, ...change }));
    await this.attempt(() => Promise.all([this.rereadLayout(), this.rereadProjects()]));
  }

  async remove({ hostId, sessionId }: Place): Promise<void> {
    await this.attempt(() => this.port.deleteSession({ sessionId, hostId }));
    await this.attempt(() => Promise.all([this.rereadLayout(), this.rereadProjects()]));
  }

  async cancel(): Promise<void> {
    const state = this.session?.state;
    if (this.canAct && canStop(state) && this.activeId !== '') {
      const tabId = this.activeId;
      await this.attempt(() => this.port.cancel({ tabId, turnId: turnOf(state) }));
    }
  }

  /** Asks the model for a summary of the active tab's conversation. */
  async compact(): Promise<void> {
    const tabId = this.activeId;
    await this.attempt(() => this.port.compact({ tabId }));
  }

  /** A copy of a session, in a tab of its own. */
  async copy({ hostId, sessionId }: Place): Promise<void> {
    await this.#opened(() => this.port.forkSession({ sessionId, hostId }));
  }

  /** Takes a message back with all that follows; its text is then in the composer, before a draft. */
  async rewind(seq: number): Promise<void> {
    const tabId = this.activeId;
    const reply = await this.attempt(() => this.port.rewind({ tabId, seq }));
    if (reply) {
      const draft = this.outbox.draft(tabId);
      this.outbox.write(tabId, draft.trim() === '' ? reply.text : `${reply.text}\n\n${draft}`);
      await this.#conversations.get(tabId)?.load();
    }
  }

  /** SV-09: the person's word about closing the window. */
  async quit(word: QuitWord): Promise<void> {
    await this.attempt(() => this.port.quit(word));
    if (word === 'cancel') {
      this.quitting = null;
    }
  }

  openReview(): void {
    this.reviewing = true;
    void this.review.show(this.activeId);
  }

  async saveSettings(change: Partial<Settings>): Promise<void> {
    if (this.settings === null) {
      return;
    }
    const before = this.settings;
    this.use({ ...before, ...change });
    try {
      this.use(await this.port.saveSettings({ ...before, ...change }));
    } catch (error) {
      this.use(before);
      this.toasts.error(error);
    }
  }

  /** Puts settings on screen. */
  use(settings: Settings): void {
    this.settings = settings;
    setLanguage(settings.language);
    const dark =
      settings.theme === 'dark' ||
      (settings.theme === 'system' && window.matchMedia('(prefers-color-scheme: dark)').matches);
    const root = document.documentElement;
    root.dataset.theme = dark ? 'dark' : 'light';
    root.style.setProperty('--font-base', `${settings.fontSize}px`);
  }

  #tabs(tabs: TabView[]): void {
    for (const before of this.tabs) {
      const now = tabs.find((tab) => tab.tabId === before.tabId);
      if (now?.sessionGeneration !== before.sessionGeneration) {
        this.#conversations.get(before.tabId)?.close();
        this.#conversations.delete(before.tabId);
        this.queues.forget(before.tabId);
      }
    }
    this.tabs = tabs;
    for (const tab of tabs) {
      this.outbox.restore(tab.tabId, tab.draft);
    }
    this.#converse(this.activeId);
  }

  #show(tabId: string): void {
    if (this.activeId !== tabId) {
      this.activeId = tabId;
      this.reviewing = false;
      this.rewinding = null;
      void this.review.show('');
    }
    this.#converse(tabId);
  }

  #converse(tabId: string): void {
    if (
      !this.#conversations.has(tabId) &&
      this.tabs.some((tab) => tab.tabId === tabId && tab.problem === '')
    ) {
      const conversation = new Conversation(this.port, tabId);
      this.#conversations.set(tabId, conversation);
      void conversation.load();
      void this.queues.load(tabId);
      void this.outbox.settle(tabId);
    }
  }

  async #opened(work: () => Promise<TabView>): Promise<void> {
    const tab = await this.attempt(work);
    if (tab) {
      await this.#shown(tab);
    }
  }

  async #shown(tab: TabView): Promise<void> {
    if (!this.tabs.some((other) => other.tabId === tab.tabId)) {
      this.#tabs([...this.tabs, tab]);
    }
    this.#show(tab.tabId);
    await this.attempt(() => Promise.all([this.rereadLayout(), this.rereadProjects()]));
    void this.attempt(() => this.port.selectTab({ tabId: tab.tabId }));
  }

  #link(link: Link): void {
    this.#sync.link(link === 'up');
    if (link === 'up') {
      void this.hosts.load();
      this.outbox.flush();
      for (const tabId of this.#conversations.keys()) {
        void this.queues.load(tabId);
        void this.outbox.settle(tabId);
      }
      return;
    }
    this.refused = link === 'refused';
  }

  #event(event: AppEvent): void {
    switch (event.event) {
      case 'runtime-state:changed':
        this.#sync.changed(event.payload);
        break;
      case 'desktop:resync':
        this.#sync.resync();
        void this.rereadLayout().catch(() => undefined);
        void this.hosts.load();
        this.#rereadSoon();
        for (const [tabId, conversation] of this.#conversations) {
          void conversation.load();
          void this.queues.load(tabId);
        }
        break;
      case 'remote-tab:updated':
        this.#sync.verify();
        this.#rereadSoon();
        void this.#remote(event.payload);
        break;
      case 'session:frames':
        this.#frames(event.payload.frames);
        break;
    }
  }

  /** A connection changed: what could not be read of its tabs before is asked for again. */
  async #remote({ hostId, tabIds }: RemoteTab): Promise<void> {
    await this.hosts.load();
    if (this.hosts.isAway(hostId)) {
      return;
    }
    for (const tabId of tabIds) {
      const conversation = this.#conversations.get(tabId);
      if (conversation && (!conversation.loaded || conversation.problem !== '')) {
        void conversation.load();
        void this.queues.load(tabId);
      }
      void this.outbox.settle(tabId);
    }
  }

  #frames(frames: readonly NumberedFrame[]): void {
    for (const tab of this.tabs) {
      const own = frames.filter(
        // A gap without a session is one of the whole stream.
        ({ frame }) =>
          frame.sessionId === tab.sessionId || (frame.kind === 'gap' && frame.sessionId === ''),
      );
      if (own.length === 0) {
        continue;
      }
      this.#conversations.get(tab.tabId)?.frames(own);
      const kinds = new Set(own.map(({ frame }) => frame.kind));
      if (kinds.has('inbox_changed') || kinds.has('gap')) {
        void this.queues.load(tab.tabId);
      }
      if (kinds.has('session_changed')) {
        void this.rereadLayout().catch(() => undefined);
      }
      if (
        this.reviewing &&
        tab.tabId === this.activeId &&
        (kinds.has('tool_result') || kinds.has('turn_done'))
      ) {
        void this.review.refresh();
      }
    }
  }

  /** Rows and titles of the project tree, when the projection names other ones. */
  #rereadSoon(): void {
    clearTimeout(this.#rereading);
    this.#rereading = setTimeout(() => {
      void this.rereadProjects().catch(() => undefined);
      void this.rereadLayout().catch(() => undefined);
    }, 150);
  }
}

function sameRows(
  a: readonly Pick<Topic, 'scope' | 'topicId' | 'title'>[],
  b: readonly Pick<Topic, 'scope' | 'topicId' | 'title'>[],
): boolean {
  return (
    a.length === b.length &&
    a.every((row, index) => {
      const other = b[index];
      return (
        row.scope === other?.scope && row.topicId === other.topicId && row.title === other.title
      );
    })
  );
}

const [useDesk, provideDesk] = createContext<Desk>();
export { provideDesk, useDesk };
