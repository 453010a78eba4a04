// A file as text, and what is found in it without the parser: its tokens and its functions.
import { functionsIn, type SourceFunction } from './functions.ts';
import { SourceError } from './source-error.ts';
import { type Tokens, tokenize } from './tokens.ts';

/** A file; what is found in it is worked out when it is asked for. */
export interface SourceText {
  readonly path: string;
  readonly source: string;
  /** Plain JavaScript, whose types are in comments. */
  readonly isScript: boolean;
  /** It, with annotations that say nothing as blanks. */
  readonly plain: string;
  /** @throws SourceError */
  readonly tokens: Tokens;
  /** @throws SourceError */
  readonly functions: readonly SourceFunction[];
}

export function sourceText(path: string, source: string, known?: Tokens): SourceText {
  const isScript = !path.endsWith('.ts');
  let tokens = known;
  let functions: readonly SourceFunction[] | undefined;
  let plain: string | undefined;
  return {
    path,
    source,
    isScript,
    get plain() {
      plain ??= isScript ? source : source.replace(untypedIn(source), (annotation) => ' '.repeat(annotation.length));
      return plain;
    },
    get tokens() {
      tokens ??= tokenize(source);
      return tokens;
    },
    get functions() {
      functions ??= functionsIn(this.tokens, isScript);
      return functions;
    },
  };
}

/** Whether its tokens can be told; of the controller's own file the parser says what is wrong with it. */
export function isFollowed(file: SourceText): boolean {
  try {
    return file.functions.length >= 0;
  } catch (error) {
    if (error instanceof SourceError) return false;
    throw error;
  }
}

/** Whether a text stands there to the character, but for blanks where Node has taken types away. */
export function standsAt(text: string, { source }: Pick<SourceText, 'source'>, at: number): boolean {
  for (let i = 0; i < text.length; i++) if (text[i] !== source[at + i] && text[i] !== ' ') return false;
  return at >= 0;
}

/** Whether something in it has that name. */
export function mentions({ source }: SourceText, name: string): boolean {
  return source.includes('\\u') || new RegExp(`(?<![\\w$])['"]?${name.replace(/[^\w ]/g, '\\$&')}['"]?\\s*[\\](<:=]`).test(source);
}

/** Annotations that say nothing: `unknown`, `any`, and the params of `gatefold` where that is what their name stands for. */
function untypedIn(source: string): RegExp {
  const names = ['ControllerParams', 'Params'].filter((name) => {
    const sources = Array.from(source.matchAll(new RegExp(`\\b${name}\\b[^;'"]*?\\bfrom\\s*['"]([^'"]*)`, 'g')), ([, from]) => from);
    const isOther = new RegExp(`\\b(?:as|type|interface|class|namespace)\\s+${name}\\b(?!\\s*[,}])|\\bas\\s+${name}\\b`).test(source);
    return !isOther && sources.length > 0 && sources.every((from) => from === 'gatefold');
  });
  return new RegExp(`\\??\\s*:\\s*(?:${['unknown', 'any', ...names].join('|')})(?=\\s*[,)])`, 'g');
}
