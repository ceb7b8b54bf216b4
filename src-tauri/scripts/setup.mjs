// What the machine needs before anything can be built. On Debian and Ubuntu, with root or sudo, what
// is missing is installed; elsewhere it is named, with the way to get it. Nothing is installed that
// is there already.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { chromium } from './browser.mjs';
import { addToPath, mustRun, root, textOf, which } from './programs.mjs';
import { Failure, heading, say } from './terminal.mjs';

const TO_BUILD = [
  {
    program: process.platform === 'win32' ? 'git' : 'cc',
    apt: 'build-essential',
    darwin: 'xcode-select --install',
    win32: 'install Git for Windows and the Visual Studio Build Tools with "Desktop C++"',
  },
  {
    program: 'git',
    apt: 'git',
    darwin: 'xcode-select --install',
    win32: 'winget install Git.Git',
  },
];

// The window draws with the system's web view; Windows and macOS bring theirs.
const TO_START = [
  { program: 'pkg-config', apt: 'pkg-config', only: ['linux'] },
  { library: 'webkit2gtk-4.1', apt: 'libwebkit2gtk-4.1-dev', only: ['linux'] },
  { library: 'gtk+-3.0', apt: 'libgtk-3-dev', only: ['linux'] },
  { library: 'librsvg-2.0', apt: 'librsvg2-dev', only: ['linux'] },
];

// The tests run real commands, look at real processes, and drive the real window without a screen.
const TO_TEST = [
  { program: 'ps', apt: 'procps', darwin: 'part of macOS', only: ['linux', 'darwin'] },
  { program: 'bwrap', apt: 'bubblewrap', only: ['linux'] },
  { program: 'setsid', apt: 'util-linux', only: ['linux'] },
  { program: 'Xvfb', apt: 'xvfb', only: ['linux'] },
  { program: 'xauth', apt: 'xauth', only: ['linux'] },
  { program: 'dbus-run-session', apt: 'dbus', only: ['linux'] },
  { program: 'ssh', apt: 'openssh-client', only: ['linux'] },
  {
    program: 'sshd',
    apt: 'openssh-server',
    only: ['linux'],
    isThere: () => existsSync('/usr/sbin/sshd'),
  },
  { program: 'WebKitWebDriver', apt: 'webkit2gtk-driver', only: ['linux'] },
];

// The browser tests drive the system's own browser.
const TO_BROWSE = [
  { program: 'chromium', apt: 'chromium', only: ['linux'], isThere: () => chromium() !== null },
];

/** The proxy that speaks WebDriver for the window. */
const TAURI_DRIVER = '2.1.0';

/**
 * Sees to everything that building needs; with `{ window: true }` also to what the window needs,
 * with `{ tests: true }` to what the tests need, with `{ browser: true }` to a browser, and with `{ driver: true }` to what drives the
 * window.
 */
export async function setUp({
  tests = false,
  window = tests,
  driver = false,
  browser = driver,
} = {}) {
  heading('What this machine needs');
  checkNode();
  const wanted = [
    ...TO_BUILD,
    ...(window ? TO_START : []),
    ...(tests ? TO_TEST : []),
    ...(browser ? TO_BROWSE : []),
  ].filter((need) => !need.only || need.only.includes(process.platform));
  const missing = wanted.filter((need) => !isThere(need));
  if (missing.length > 0) {
    await install(missing);
  }
  await seeToRust(tests ? ['rustfmt', 'clippy'] : []);
  if (driver && process.platform === 'linux' && !which('tauri-driver')) {
    await mustRun(
      'cargo',
      ['install', 'tauri-driver', '--version', TAURI_DRIVER, '--locked'],
      `run \`cargo install tauri-driver --version ${TAURI_DRIVER} --locked\` by hand and look at what it says.`,
    );
    addToPath();
  }
  say('Everything is there.');
}

function isThere({ program, library, isThere: look }) {
  if (look) {
    return look();
  }
  return library ? textOf('pkg-config', ['--exists', library]) !== null : which(program) !== null;
}

function checkNode() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 20) {
    throw new Failure(
      `Node ${process.versions.node} is too old.`,
      'install Node 20 or later, then run the same command again.',
    );
  }
}

/** The words that run a command as root here, or null. */
function asRoot() {
  if (process.getuid?.() === 0) {
    return [];
  }
  return which('sudo') ? ['sudo'] : null;
}

async function install(missing) {
  const names = missing.map((need) => need.program ?? need.library).join(', ');
  say(`Missing: ${names}.`);
  if (process.platform !== 'linux') {
    throw new Failure(
      `${names} must be installed first.`,
      missing
        .map((need) => need[process.platform] ?? `install ${need.program ?? need.library}`)
        .join('; '),
    );
  }
  const packages = [...new Set(missing.map((need) => need.apt))];
  const prefix = asRoot();
  if (!which('apt-get') || !prefix) {
    throw new Failure(
      `${names} must be installed first, and this script can't do it here.`,
      `install what your system calls ${packages.join(', ')}, then run the same command again.`,
    );
  }
  const advice = `install ${packages.join(', ')} by hand, then run the same command again.`;
  await apt(prefix, ['update'], advice);
  await apt(prefix, ['install', '-y', '--no-install-recommends', ...packages], advice);
}

async function apt(prefix, args, advice) {
  const words = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args];
  await mustRun(words[0], words.slice(1), advice);
}

/** The version that the workspace asks for, as [major, minor]. */
function wantedRust() {
  const manifest = readFileSync(path.join(root, 'Cargo.toml'), 'utf8');
  return /^rust-version = "(\d+)\.(\d+)/m.exec(manifest).slice(1, 3).map(Number);
}

function enough(version, [major, minor]) {
  const found = /(\d+)\.(\d+)/.exec(version ?? '');
  if (!found) {
    return false;
  }
  const [haveMajor, haveMinor] = found.slice(1, 3).map(Number);
  return haveMajor > major || (haveMajor === major && haveMinor >= minor);
}

async function seeToRust(components) {
  const wanted = wantedRust();
  const name = wanted.join('.');
  if (!which('cargo')) {
    await installRust(name);
  }
  const version = textOf('cargo', ['--version']);
  if (!enough(version, wanted)) {
    if (!which('rustup')) {
      throw new Failure(
        `Rust ${name} or later is needed; found: ${version?.trim() ?? 'none that runs'}.`,
        'install Rust by rustup (https://rustup.rs), then run the same command again.',
      );
    }
    await mustRun(
      'rustup',
      ['toolchain', 'install', name, '--profile', 'minimal'],
      `run \`rustup toolchain install ${name}\` by hand and look at what it says.`,
    );
    process.env.RUSTUP_TOOLCHAIN = name;
  }
  for (const component of components) {
    const program = component === 'clippy' ? 'cargo-clippy' : component;
    if (textOf(program, ['--version']) === null) {
      await mustRun(
        'rustup',
        ['component', 'add', component],
        `install ${component} for your Rust, then run the same command again.`,
      );
    }
  }
}

async function installRust(name) {
  if (process.platform !== 'linux' || !asRoot() || !which('apt-get')) {
    throw new Failure(
      `Rust ${name} or later is not installed.`,
      'install it by rustup (https://rustup.rs), open a new terminal, and run the same command again.',
    );
  }
  if (!which('curl')) {
    await install([{ program: 'curl', apt: 'curl' }]);
    await install([{ program: 'CA certificates', apt: 'ca-certificates' }]);
  }
  const fetchIt = `curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs`;
  await mustRun(
    'sh',
    ['-c', `set -e; ${fetchIt} | sh -s -- -y --profile minimal --default-toolchain ${name}`],
    'install Rust by hand as https://rustup.rs says, then run the same command again.',
  );
  addToPath();
}
