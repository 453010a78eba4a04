// Whether a source gives types to the parameters of an operation, by its text alone. It decides whether the parser is loaded,
// and whether an operation that the parser did not find may run without a check; so it errs on the side of yes.

export interface Question {
  readonly source: string;
  /** Plain JavaScript, whose types are in comments. */
  readonly isScript: boolean;
  readonly name: string;
  /** As run time has it: its text still shows whether it takes anything. */
  readonly method: (...args: never[]) => unknown;
}

/** `maybe`: it stands there by a name or an expression. `unseen`: it does not stand there. */
export type Answer = 'typed' | 'maybe' | 'untyped' | 'unseen';

const UNTYPED = /:\s*(?:unknown|any)\s*(?=[,)=]|$)/g;
const UNTYPED_WITH_PARAMS = /:\s*(?:unknown|any|ControllerParams|Params)\s*(?=[,)=]|$)/g;
/** Characters behind a name that are looked at. */
const WINDOW = 5000;

export function typesIn({ source, isScript, name, method }: Question): Answer {
  if (/^[^(=]*\(\s*\)/.test(Function.prototype.toString.call(method))) return 'untyped';
  if (isScript) return typesInComments(source, name);
  const isOurs = /\bControllerParams\b[^;]*?from\s*['"]gatefold['"]/.test(source);
  // A method with a computed name may be any.
  let answer: Answer = /\]\s*(?:<[^>]*>)?\s*\([^)]*:/.test(source) ? 'maybe' : 'unseen';
  for (const [before, behind] of occurrences(source, name)) {
    const quote = /^['"`]/.exec(behind)?.[0];
    if (quote !== undefined && quote !== before) continue;
    const text = quote === undefined ? behind : behind.slice(1).replace(/^\s*\]/, '');
    const head = /^\s*(?::\s*)?(?:async\b\s*)?(?:function\b\s*\*?\s*[\w$]*\s*)?\(/.exec(text);
    if (head !== null) {
      const params = upTo(text.slice(head[0].length), ')');
      if (params === undefined || params.replace(isOurs ? UNTYPED_WITH_PARAMS : UNTYPED, '').includes(':')) return 'typed';
      if (answer === 'unseen') answer = 'untyped';
    } else if (/^\s*(?:[,}:<]|=(?!=))/.test(text)) {
      if (text.trimStart().startsWith('<') || hasTypedFunction(text)) return 'typed';
      answer = 'maybe';
    }
  }
  return answer;
}

/** What stands before the name, and what behind it; not where it is read off something or part of a longer name. */
function* occurrences(source: string, name: string): Generator<[before: string, behind: string]> {
  for (let at = source.indexOf(name); at >= 0; at = source.indexOf(name, at + name.length)) {
    const before = source[at - 1] ?? '';
    const behind = source.slice(at + name.length, at + name.length + WINDOW);
    if (/[\w$#]/.test(before) || /^[\w$]/.test(behind)) continue;
    // `X.prototype.created = …` defines it, `this.created()` does not.
    if (before !== '.' || /^\s*=(?!=)/.test(behind)) yield [before, behind];
  }
}

/** The text up to the bracket that closes it; undefined when that is not in sight. */
function upTo(text: string, end: ')' | ','): string | undefined {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    if (depth === 0 && (char === end || char === ')' || char === '}')) return text.slice(0, i);
    if (char === '(' || char === '{' || char === '[') depth++;
    else if (char === ')' || char === '}' || char === ']') depth--;
  }
  return undefined;
}

/** `: wrap(async (data: NewUser) => …)`, `, { value(data: NewUser) { … } }` */
function hasTypedFunction(text: string): boolean {
  const value = /^\s*[:=,]/.test(text) ? (upTo(text.replace(/^\s*[:=,]/, ''), ',') ?? text) : '';
  return /=>|\bfunction\b|\)\s*(?::[^{]*)?\{/.test(value) && /\([^)]*:/.test(value);
}

/** A comment, and behind it what may stand before the name of a function. */
const BEHIND_COMMENT = /\*\/\s*(?:(?:export|default|async|function|const|let|var)\b\s*|\*\s*|\[\s*|['"`])*$/;

/** `@param {T} data` in the comment before the function. */
function typesInComments(source: string, name: string): Answer {
  let answer: Answer = 'unseen';
  for (let at = source.indexOf(name); at >= 0; at = source.indexOf(name, at + name.length)) {
    answer = 'untyped';
    if (!BEHIND_COMMENT.test(source.slice(Math.max(0, at - 200), at))) continue;
    if (/@(?:param|arg|argument)\s*\{/.test(source.slice(source.lastIndexOf('/**', at), at))) return 'typed';
  }
  return answer;
}
