// A session's frames as a person reads them: what the model thinks and says as it comes, one line for
// each call when it starts and one for what became of it.
import { bold, cyan, dim, green, red, yellow } from '../terminal.mjs';

const MARKS = {
  proposed: dim('·'),
  in_flight: cyan('▶'),
  started: cyan('▶'),
  running: cyan('▶'),
  completed: green('✓'),
  failed: red('✗'),
  interrupted: yellow('■'),
  cancelled: yellow('–'),
  not_started: yellow('–'),
  unknown: yellow('?'),
  user_confirmed: yellow('✓'),
  user_dismissed: yellow('–'),
};

const OUTPUT_LINES = 8;

export class Printer {
  #open = '';

  /** Shows one frame; kinds that say nothing to a person are left out. */
  show(frame) {
    switch (frame.kind) {
      case 'reasoning':
        this.#stream('reasoning', dim(frame.text));
        break;
      case 'text':
        this.#stream('text', frame.text);
        break;
      case 'tool_started':
        this.line(`${mark('started')} ${call(frame.tool)}`);
        break;
      case 'tool_result':
        this.tool(frame.tool);
        break;
      case 'approval_request': {
        const { kind, approval } = frame.prompt;
        this.line(`${yellow('!')} asked (${kind}): ${approval.subject}`);
        this.line(dim(`  ${approval.reason}`));
        break;
      }
      case 'retrying':
      case 'notice':
        this.line(`${yellow('!')} ${frame.message}`);
        break;
      case 'turn_done':
        this.line(dim(`turn ${frame.status}${frame.message ? `: ${frame.message}` : ''}`));
        break;
      default:
        break;
    }
  }

  /** What became of a call. */
  tool(tool) {
    const facts = [tool.state];
    if (typeof tool.exitCode === 'number') {
      facts.push(`exit ${tool.exitCode}`);
    }
    if (tool.resultSource && tool.resultSource !== 'live') {
      facts.push(tool.resultSource);
    }
    if (tool.code) {
      facts.push(tool.code);
    }
    this.line(`${mark(tool.state)} ${call(tool)} ${dim(`(${facts.join(', ')})`)}`);
    if (tool.name === 'shell' || tool.code) {
      const lines = (tool.output ?? '').trimEnd().split('\n').filter(Boolean);
      lines.slice(0, OUTPUT_LINES).forEach((line) => this.line(dim(`    ${line}`)));
      if (lines.length > OUTPUT_LINES) {
        this.line(dim(`    … ${lines.length - OUTPUT_LINES} more lines`));
      }
    }
  }

  /** A line of its own, after the streamed text if one is open. */
  line(text) {
    this.#close();
    console.log(`  ${text}`);
  }

  #stream(kind, text) {
    if (this.#open !== kind) {
      this.#close();
      process.stdout.write('  ');
      this.#open = kind;
    }
    process.stdout.write(text);
  }

  #close() {
    if (this.#open) {
      process.stdout.write('\n');
      this.#open = '';
    }
  }
}

const mark = (state) => MARKS[state] ?? yellow('?');

/** A call in a few words. */
export function call(tool) {
  const args = tool.args ?? {};
  const subject = args.command ?? args.path ?? args.pattern ?? args.url ?? '';
  return `${bold(tool.name)} ${subject}`.trimEnd();
}
