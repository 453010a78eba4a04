// Whether a source gives types to what an operation takes, by its text alone. Two questions: may the parser stay unloaded, and may
// an operation that the parser did not find run without a check? Each errs on the side of yes, it has types.

export interface Question {
  readonly source: string;
  /** Plain JavaScript, whose types are in comments. */
  readonly isScript: boolean;
  readonly name: string;
  /** As run time has it: its text still shows what it takes. */
  readonly method: (...args: never[]) => unknown;
}

const DOC_TYPE = /@(?:param|arg|argument|type)\s*\{/;
/** Characters behind a name that are looked at. */
const WINDOW = 5000;
const HEAD = /^\s*(?::\s*)?(?:async\b\s*)?(?:function\b\s*\*?\s*[\w$]*\s*)?\(/;

/** False only where the operation takes nothing, or is seen to stand here with the parameters that run time has, and no types. */
export function mayBeTyped({ source, isScript, name, method }: Question): boolean {
  const taken = parametersOf(method);
  if (taken === '') return false;
  if (taken === undefined || source.includes('\\u') || (isScript && DOC_TYPE.test(source))) return true;
  const code = withoutComments(source);
  if (isFromElsewhere(code) || hasComputedName(code)) return true;
  const untyped = untypedIn(code);
  let isHere = false;
  for (const [before, behind] of occurrences(code, name)) {
    const text = afterName(before, behind);
    if (text === undefined) continue;
    const head = HEAD.exec(text);
    if (head === null && /^\s*(?:[,}:<]|=(?!=))/.test(text)) return true;
    if (head === null) continue;
    const params = upTo(text.slice(head[0].length), ')');
    if (params === undefined || bare(params.replace(untyped, '')) !== taken) return true;
    isHere = true;
  }
  return !isHere;
}

/** Whether there are types for an operation of this name, or for a function of which it is made. */
export function saysTypes(question: Question): boolean {
  const { source, isScript, name, method } = question;
  if (parametersOf(method) === '') return false;
  if (isScript) return saysTypesInComments(source, name);
  const code = withoutComments(source);
  const untyped = untypedIn(code);
  for (const [before, behind] of occurrences(code, name)) {
    const text = afterName(before, behind);
    if (text === undefined) continue;
    const head = HEAD.exec(text);
    if (head !== null) {
      const params = upTo(text.slice(head[0].length), ')');
      if (params === undefined || upTo(params.replace(untyped, ''), ':') !== undefined) return true;
    } else if (/^\s*(?:[,}:<]|=(?!=))/.test(text) && (text.trimStart().startsWith('<') || hasTypedFunction(text))) return true;
  }
  return false;
}

/** The functions that the value of a property is made of: `created: wrap(create)` → wrap, create. */
export function madeOf(source: string, name: string): string[] {
  const found = new Set<string>();
  for (const [before, behind] of occurrences(withoutComments(source), name)) {
    const text = afterName(before, behind);
    const value = text === undefined || !/^\s*[:=](?![=>])/.test(text) ? '' : (upTo(text.replace(/^\s*[:=]/, ''), ',') ?? '');
    if (!value.includes('=>')) for (const [word] of value.matchAll(/(?<![\w$.])[a-z_$][\w$]*/gi)) found.add(word);
  }
  return [...found];
}

/** Whether a typed function is put in the place of a method: `X.prototype.created = (data: NewUser) => …` */
export function isReplaced(source: string, name: string): boolean {
  const code = withoutComments(source);
  const exported = exportedName(code);
  for (const [before, behind, line] of occurrences(code, name)) {
    // `cycle.created = …` says nothing of the controller.
    const owner = /\bprototype\b[^;=]*$/.test(line) ? 'prototype' : /([\w$]+)\.$/.exec(line)?.[1];
    if (before === '.' && (owner === 'prototype' || owner === exported) && hasTypedFunction(behind)) return true;
  }
  return false;
}

/** Its parameters without white space; undefined when its text does not show them. */
function parametersOf(method: Question['method']): string | undefined {
  const text = withoutComments(Function.prototype.toString.call(method)).trimStart();
  const arrow = /^(?:async\b\s*)?([\w$]+)\s*=>/.exec(text);
  if (arrow !== null) return arrow[1];
  const head = /^(?:async\b\s*)?(?:function\b\s*)?\*?\s*(?:'[^']*'|"[^"]*"|[^\s('"[]*)\s*\(/.exec(text);
  const params = head === null ? undefined : upTo(text.slice(head[0].length), ')');
  if (params === undefined || text.includes('[native code]')) return undefined;
  return bare(params) === '' && /\barguments\b/.test(text) ? undefined : bare(params);
}

/** As the tools that strip types may print it. */
const bare = (params: string): string => params.replace(/\s+/g, '').replace(/[`']/g, '"').replace(/,$/, '');

/** Strings are stepped over, for they may hold what looks like a comment. */
function withoutComments(source: string): string {
  return source.replace(
    /('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|\/\*[\s\S]*?\*\/|\/\/[^\n\r\u2028\u2029]*/g,
    (_, string = ' ') => string,
  );
}

/** The controller is that of another file, whatever else stands in this one. */
function isFromElsewhere(code: string): boolean {
  const exported = exportedName(code) ?? '';
  return /\bexport\b[^;'"]*\bfrom\s*['"]/.test(code) || (exported !== '' && importsOf(code).some(({ names }) => names.includes(exported)));
}

/** `export default a`, `export { a as default }`. */
const exportedName = (code: string): string | undefined =>
  /\bexport\s+default\s+([\w$]+)|\bexport\s*\{[^}]*?([\w$]+)\s+as\s+default\b/.exec(code)?.slice(1).find(Boolean);

const hasComputedName = (code: string): boolean => /\]\s*(?:<[^>]*>)?\s*\([^)]*:/.test(code);

interface ImportClause {
  readonly from: string;
  /** As this file calls them. */
  readonly names: readonly string[];
}

function importsOf(code: string): ImportClause[] {
  return Array.from(code.matchAll(/\bimport\b([^;'"()]*?)\bfrom\s*(['"])([^'"\n]*)\2/g), ([, clause = '', , from = '']) => {
    const names = Array.from(clause.matchAll(/([\w$]+)\s*(?=[,}]|$)/g), ([, name]) => name as string);
    return { from, names };
  });
}

/** Annotations that say nothing: `unknown`, `any`, and the params of `gatefold` where that is what their name stands for. */
function untypedIn(code: string): RegExp {
  const own = importsOf(code)
    .filter(({ from }) => from === 'gatefold')
    .flatMap(({ names }) => names);
  const names = ['ControllerParams', 'Params'].filter(
    (name) =>
      own.includes(name) &&
      !new RegExp(`\\b(?:as|type|interface|class|namespace)\\s+${name}\\b(?!\\s*[,}])|\\bas\\s+${name}\\b`).test(code),
  );
  return new RegExp(`\\??\\s*:\\s*(?:${['unknown', 'any', ...names].join('|')})\\s*(?=[,)=]|$)`, 'g');
}

/** What stands before the name, and what behind it; not where it is read off something or part of a longer name. */
function* occurrences(source: string, name: string): Generator<[before: string, behind: string, line: string]> {
  for (let at = source.indexOf(name); at >= 0; at = source.indexOf(name, at + name.length)) {
    const before = source[at - 1] ?? '';
    const behind = source.slice(at + name.length, at + name.length + WINDOW);
    if (/[\w$#]/.test(before) || /^[\w$]/.test(behind)) continue;
    // `X.prototype.created = …` defines it, `this.created()` does not.
    if (before !== '.' || /^\s*=(?!=)/.test(behind)) yield [before, behind, source.slice(source.lastIndexOf('\n', at) + 1, at)];
  }
}

/** Behind its quotes and brackets, if it has them; undefined for a part of a longer string. */
function afterName(before: string, behind: string): string | undefined {
  const quote = /^['"`]/.exec(behind)?.[0];
  if (quote === undefined) return behind;
  return quote === before ? behind.slice(1).replace(/^\s*\]/, '') : undefined;
}

/** The text up to there, or up to the bracket that closes it; undefined when neither is in sight. For a colon: only up to one. */
function upTo(text: string, end: ')' | ',' | ':'): string | undefined {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    if (depth === 0 && char === end) return text.slice(0, i);
    if (depth === 0 && (char === ')' || char === '}')) return end === ':' ? undefined : text.slice(0, i);
    if (char === "'" || char === '"' || char === '`') {
      for (i++; i < text.length && text[i] !== char; i++) if (text[i] === '\\') i++;
    } else if (char === '(' || char === '{' || char === '[') depth++;
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
const BEHIND_COMMENT = /\*\/(?:\s|\/\/[^\n]*\n)*(?:(?:export|default|async|function|const|let|var)\b\s*|\*\s*|\[\s*|['"`]|[\w$]+\.)*$/;

/** `@param {T} data` in the comment before the function. */
function saysTypesInComments(source: string, name: string): boolean {
  for (let at = source.indexOf(name); at >= 0; at = source.indexOf(name, at + name.length)) {
    if (!BEHIND_COMMENT.test(source.slice(Math.max(0, at - 200), at))) continue;
    if (DOC_TYPE.test(source.slice(source.lastIndexOf('/**', at), at))) return true;
  }
  return false;
}
