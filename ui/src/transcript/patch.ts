// A unified diff, read for display. What can't be read as one is shown as it is.

export interface Line {
  kind: 'add' | 'del' | 'same' | 'note';
  text: string;
  before: number | null;
  after: number | null;
}

export interface Hunk {
  /** Unchanged lines left out before it; `null` when not known. */
  skipped: number | null;
  lines: Line[];
}

export interface FilePatch {
  path: string;
  change: 'new' | 'deleted' | 'changed';
  added: number;
  removed: number;
  hunks: Hunk[];
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

export function readPatch(diff: string): FilePatch[] {
  const files: FilePatch[] = [];
  let file: FilePatch | undefined;
  let hunk: Hunk | undefined;
  let before = 0;
  let after = 0;
  let reached = 1;
  let oldName = '';
  let leftBefore = 0;
  let leftAfter = 0;

  for (const line of diff.replace(/\n$/, '').split('\n')) {
    const inHunk = hunk !== undefined && (leftBefore > 0 || leftAfter > 0);
    const head = inHunk ? null : HUNK.exec(line);
    if (!inHunk && line.startsWith('--- ')) {
      oldName = nameOf(line);
      hunk = undefined;
    } else if (!inHunk && line.startsWith('+++ ')) {
      const newName = nameOf(line);
      const isNew = oldName === '' || oldName === '/dev/null';
      const isGone = newName === '/dev/null';
      file = {
        path: isGone ? oldName : newName,
        change: isNew ? 'new' : isGone ? 'deleted' : 'changed',
        added: 0,
        removed: 0,
        hunks: [],
      };
      files.push(file);
      reached = 1;
    } else if (head !== null) {
      file ??= push(files);
      before = Number(head[1]);
      after = Number(head[3]);
      leftBefore = Number(head[2] ?? 1);
      leftAfter = Number(head[4] ?? 1);
      hunk = { skipped: Math.max(0, before - reached), lines: [] };
      file.hunks.push(hunk);
    } else if (hunk && file) {
      const text = line.slice(1);
      if (line.startsWith('+')) {
        hunk.lines.push({ kind: 'add', text, before: null, after });
        after += 1;
        leftAfter -= 1;
        file.added += 1;
      } else if (line.startsWith('-')) {
        hunk.lines.push({ kind: 'del', text, before, after: null });
        before += 1;
        leftBefore -= 1;
        file.removed += 1;
      } else if (line.startsWith('\\')) {
        hunk.lines.push({ kind: 'note', text: text.trim(), before: null, after: null });
      } else {
        hunk.lines.push({ kind: 'same', text, before, after });
        before += 1;
        after += 1;
        leftBefore -= 1;
        leftAfter -= 1;
      }
      reached = before;
    }
  }
  return files;
}

function push(files: FilePatch[]): FilePatch {
  const file: FilePatch = { path: '', change: 'changed', added: 0, removed: 0, hunks: [] };
  files.push(file);
  return file;
}

/** The name behind `--- ` or `+++ `, without the side's prefix and a time. */
function nameOf(line: string): string {
  const name = line.slice(4).split('\t')[0] ?? '';
  return name.replace(/^[ab]\//, '');
}
