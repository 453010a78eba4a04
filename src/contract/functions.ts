// The functions that stand in a source, told by its tokens alone: what each is called, whether its parameters have types, and
// whether it is the one that runs. Knows nothing of types and declarations, so a service without types never loads the parser.
import { SourceError } from './source-error.ts';
import { Kind, type Token, type Tokens, tokenize } from './tokens.ts';

export interface SourceFunction {
  /** As written in it; empty: it has none, or a computed one. */
  readonly ownName: string;
  /** That, and the name of its property or variable. */
  readonly names: readonly string[];
  readonly form: Form;
  /** Its parameters give types to something; in a script its comments do. */
  readonly isTyped: boolean;
  /** Offset of its parameters. */
  readonly at: number;
  /** Indexes of tokens: where its parameters begin, where its body does, and what stands behind it. */
  readonly from: number;
  readonly body: number;
  readonly end: number;
  /** Of its parameters, without their types. */
  readonly words: readonly string[];
}

/** `signature`: of an overload or an abstract method, it has no body. */
type Form = 'arrow' | 'function' | 'method' | 'signature';

export interface RunTimeFunction extends Pick<SourceFunction, 'ownName' | 'form'> {
  readonly takesNothing: boolean;
  /** `(...all) => f(...all)` */
  readonly takesAll: boolean;
  readonly words: readonly string[];
}

export const DOC_TYPE = /@(?:param|arg|argument|type)\s*(?:[\w$.[\]=]+\s*)?\{/;
/** On a new line they begin a statement. */
const STATEMENT = new Set(
  'return const let var if else for while do switch case break continue throw try catch finally await yield delete function async'.split(
    ' ',
  ),
);
/** `if (a) {` is no method. */
const HEADS = /^(?:if|for|while|switch|catch|with|await)$/;
const BEGINS_TYPE = new Set(['as', 'satisfies', 'type', 'interface', 'declare']);

// What stands in a source

export function functionsIn(tokens: Tokens, isScript: boolean): SourceFunction[] {
  const { list } = tokens;
  const untyped = untypedNames(list);
  const found: SourceFunction[] = [];
  for (let from = 0; from < list.length; from++) {
    const isBare = isName(list[from]) && isSign(list[from + 1], '=>');
    if (!isBare && !isSign(list[from], '(')) continue;
    const close = isBare ? from : endOf(tokens, from);
    const params = isBare ? [] : paramsOf(tokens, from, close);
    const isTyped = params.some((param) => saysType(param, untyped));
    const behind = behindParams(tokens, close);
    if ((behind === undefined && !(isTyped && isName(list[from - 1]))) || HEADS.test(list[from - 1]?.text ?? '')) continue;
    const isArrow = behind !== undefined && isSign(list[behind], '=>');
    const body = behind === undefined ? close + 1 : behind + (isArrow ? 1 : 0);
    const { form, ownName, names, first } = headOf(tokens, from, isArrow);
    found.push({
      ownName,
      names,
      form: behind === undefined ? 'signature' : form,
      isTyped: isTyped || (isScript && hasDocType(tokens, first, from, close)),
      at: (list[from] as Token).at,
      from,
      body,
      end: behind === undefined ? body : isSign(list[body], '{') ? endOf(tokens, body) + 1 : endOfValue(tokens, body),
      words: isBare
        ? wordOf(list[from] as Token)
        : params.filter(({ words }) => words[0]?.text !== 'this').flatMap(({ words }) => words.flatMap(wordOf)),
    });
  }
  return found;
}

/** Index of the `{` or `=>` behind a list of parameters and the type of the result; undefined: there is none. */
function behindParams(tokens: Tokens, close: number): number | undefined {
  const { list } = tokens;
  if (isSign(list[close + 1], '{') || isSign(list[close + 1], '=>')) return close + 1;
  if (!isSign(list[close + 1], ':')) return undefined;
  let wantsType = true;
  let angles = 0;
  for (let i = close + 2; i < list.length - 1; i = endOf(tokens, i) + 1) {
    const token = list[i] as Token;
    const sign = punctuation(token);
    if (sign === '{' && !wantsType) return i;
    // `(): () => void {` has a type there, `(): void =>` ends with one.
    if (sign === '=>' && !isSign(list[i - 1], ')')) return i;
    if (/^[;=)\]}]$/.test(sign) || (sign === ',' && angles === 0)) return undefined;
    angles += sign === '<' ? 1 : sign === '>' ? -1 : 0;
    const isOperator = sign === '' ? /^(?:is|keyof|readonly|extends|asserts)$/.test(token.text) : !/^[>({[]$/.test(sign);
    wantsType = token.kind !== Kind.template && isOperator;
  }
  return undefined;
}

interface Param {
  readonly words: Token[];
  readonly type: Token[];
}

function paramsOf(tokens: Tokens, open: number, close: number): Param[] {
  const { list } = tokens;
  const found: Param[] = [];
  let param: Param = { words: [], type: [] };
  let place: keyof Param | 'value' = 'words';
  let angles = 0;
  for (let i = open + 1; i < close; ) {
    const sign = punctuation(list[i]);
    const end = endOf(tokens, i) + 1;
    if (place === 'type') angles += sign === '<' ? 1 : sign === '>' ? -1 : 0;
    if (sign === ',' && angles <= 0) {
      found.push(param);
      param = { words: [], type: [] };
      place = 'words';
    } else if (sign === ':' && place === 'words') place = 'type';
    else if (sign === '=' && angles <= 0) place = 'value';
    else param[place === 'type' ? 'type' : 'words'].push(...list.slice(i, end));
    i = end;
  }
  return [...found, param].filter(({ words }) => words.length > 0);
}

/** `unknown`, `any`, and the params of `gatefold` where that is what their name stands for, say nothing. */
function saysType({ words, type }: Param, untyped: ReadonlySet<string>): boolean {
  if (words[0]?.text === 'this') return false;
  const isList = isSign(words[0], '...') && type.every((token) => /^[[\],]?$/.test(punctuation(token)));
  return type.length > 0 && !((isList || type.length === 1) && type.every((token) => !isName(token) || untyped.has(token.text)));
}

function untypedNames(list: readonly Token[]): ReadonlySet<string> {
  const found = new Set(['unknown', 'any']);
  for (const [i, { text, kind }] of list.entries()) {
    if (text !== 'from' || kind === Kind.string || list[i + 1]?.value !== 'gatefold') continue;
    for (let j = i - 1; j >= 0 && list[j]?.text !== 'import'; j--) {
      const { text: name } = list[j] as Token;
      if (name === 'ControllerParams' || name === 'Params') found.add(name);
    }
  }
  for (const [i, { text }] of list.entries()) {
    const name = list[i + 1]?.text;
    const declares = /^(?:type|interface|class|namespace)$/.test(text) && !/^[,}]$/.test(list[i + 2]?.text ?? '');
    if (name !== undefined && /^(?:Controller)?Params$/.test(name) && (text === 'as' || declares)) found.delete(name);
  }
  return found;
}

/** What stands before parameters: how it is written, what it is called, and the first token that belongs to it. */
function headOf(
  { list, partner }: Tokens,
  params: number,
  isArrow: boolean,
): Pick<SourceFunction, 'form' | 'ownName' | 'names'> & { first: number } {
  const names: string[] = [];
  let form: Form = 'arrow';
  let i = params - 1;
  if (isSign(list[i], '>')) {
    for (let angles = 1; angles > 0 && i > 0; ) angles += isSign(list[--i], '>') ? 1 : isSign(list[i], '<') ? -1 : 0;
    i--;
  }
  /** The index before a name that ends there, or before its brackets. */
  const takeName = (end: number): number => {
    const from = isSign(list[end], ']') ? partner.lastIndexOf(end, end) : end;
    const token = list[from === end ? end : from + 1];
    const isText = token?.kind === Kind.string || token?.text === '`';
    if (token !== undefined && (from === end ? isText || isName(token) : isText && end === from + 2)) names.push(token.value);
    return from - 1;
  };
  if (!isArrow) {
    const isKeyword = (at: number) => list[at]?.text === 'function' || (isSign(list[at], '*') && list[at - 1]?.text === 'function');
    form = isKeyword(i) || isKeyword(i - 1) ? 'function' : 'method';
    if (!isKeyword(i)) i = takeName(i);
    while (list[i]?.text === 'function' || isSign(list[i], '*')) i--;
  }
  const [ownName = ''] = names;
  if (list[i]?.text === 'async') i--;
  if (form !== 'method') {
    while (isSign(list[i], '(') && /^[:=(]$/.test(punctuation(list[i - 1]))) i--;
    if (isSign(list[i], ':') || isSign(list[i], '=')) i = takeName(i - 1);
    // `type Handler = (data: User) => …` is none.
    if (list[i]?.text === 'type') names.length = 0;
  }
  let first = i + 1;
  // The comment may stand before the statement: `/** … */ export const a = `, `/** … */ X.prototype.a = `.
  for (; isName(list[i]) || /^[.(*]$/.test(punctuation(list[i])); i--) {
    if ((list[first] as Token).fresh && isName(list[first])) break;
    first = i;
  }
  return { form, ownName, names, first };
}

/** In the comments before it, and before each of its parameters. */
function hasDocType(tokens: Tokens, first: number, open: number, close: number): boolean {
  const { list } = tokens;
  for (let i = first; i <= open; i++) if (DOC_TYPE.test(list[i]?.doc ?? '')) return true;
  for (let i = open + 1; i < close; i = endOf(tokens, i) + 1) if (DOC_TYPE.test(list[i]?.doc ?? '')) return true;
  return false;
}

/** Behind a value that begins there: at a comma, at the bracket around it, or where a statement begins. */
export function endOfValue(tokens: Tokens, from: number): number {
  const { list } = tokens;
  for (let i = from; i < list.length; i = endOf(tokens, i) + 1) {
    const token = list[i] as Token;
    if (token.kind === Kind.end || /^[,;)\]}]$/.test(punctuation(token)) || (token.kind === Kind.template && token.text.startsWith('}')))
      return i;
    const begins = STATEMENT.has(token.text) || /^(?:export|import|class|type|interface|enum|@)$/.test(token.text);
    if (i > from && token.fresh && begins && token.kind !== Kind.string) return i;
  }
  return list.length - 1;
}

// What runs

/** Undefined when its text does not show it: it is bound, or built in. */
export function runTimeFunction(method: (...args: never[]) => unknown): RunTimeFunction | undefined {
  try {
    return wholeFunction(method);
  } catch (error) {
    if (error instanceof SourceError) return undefined;
    throw error;
  }
}

function wholeFunction(method: (...args: never[]) => unknown): RunTimeFunction | undefined {
  const text = Function.prototype.toString.call(method);
  if (text.includes('[native code]')) return undefined;
  const tokens = tokenize(text);
  const { list } = tokens;
  const whole = functionsIn(tokens, false).find(({ end }) => end === list.length - 1);
  if (whole === undefined) return undefined;
  const takesNothing =
    isSign(list[whole.from], '(') && isSign(list[whole.from + 1], ')') && !list.some((token) => token.text === 'arguments');
  const takesAll = isSign(list[whole.from + 1], '...');
  return { ownName: whole.ownName, form: whole.form, takesNothing, takesAll, words: [...whole.words, ...bodyWords(tokens, whole)] };
}

/** Without what the tools that strip types put there: `__name(() => 1, "find")`, `__name(find, "find")`. */
function bodyWords(tokens: Tokens, { body, end }: SourceFunction): string[] {
  const { list } = tokens;
  const words: string[] = [];
  let added = -1;
  for (let i = body; i < end; i++) {
    const { text } = list[i] as Token;
    if (text === '__name' && isSign(list[i + 1], '(')) {
      added = endOf(tokens, i + 1) - 1;
      if (added === i + 4) i = added;
    } else if (i !== added && !text.startsWith('import_')) words.push(...wordOf(list[i] as Token));
  }
  return words;
}

/** Whether this may be what runs, its types taken away. */
export function readsLike({ ownName, form, words }: RunTimeFunction, source: SourceFunction, { list }: Tokens): boolean {
  if ((source.ownName !== '' && source.ownName !== ownName) || source.form !== form || source.words.some((word, i) => word !== words[i]))
    return false;
  let next = source.words.length;
  let inType = false;
  for (let i = source.body; i < source.end; i++) {
    const token = list[i] as Token;
    const [word] = wordOf(token);
    if (isSign(token, ':') || isSign(token, '<')) inType = true;
    if (word === undefined) continue;
    if (word === words[next]) {
      next++;
      inType = false;
    } else if (BEGINS_TYPE.has(token.text)) inType = true;
    else if (!inType) return false;
  }
  return next === words.length;
}

// Tokens

/** Index of the last token of what begins there: of a bracket or a template its end. */
export function endOf({ partner }: Tokens, from: number): number {
  let end = from;
  while ((partner[end] as number) >= 0) end = partner[end] as number;
  return end;
}

/** What tools leave as it is: they write `void 0` and `1 / 0`, and number names that another one would hide. */
function wordOf({ kind, value }: Token): string[] {
  if (kind === Kind.string) return [value];
  return kind === Kind.name && !/^(?:undefined|void|Infinity)$/.test(value) ? [value.replace(/\d+$/, '')] : [];
}

export const isName = (token: Token | undefined): boolean => token?.kind === Kind.name;
export const punctuation = (token: Token | undefined): string => (token?.kind === Kind.punctuation ? token.text : '');
export const isSign = (token: Token | undefined, text: string): boolean => punctuation(token) === text;
