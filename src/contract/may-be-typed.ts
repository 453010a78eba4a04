// Whether the parser may stay unloaded for a controller: only when each of its operations is seen to stand in its file, under its
// name and as it runs, without types.
import { DOC_TYPE, readsLike, runTimeFunction, type SourceFunction } from './functions.ts';
import { isFollowed, mentions, type SourceText, standsAt } from './source-text.ts';

type Method = (...args: never[]) => unknown;

/** Errs on the side of yes. @param others what the file imports */
export function mayBeTyped(text: SourceText, name: string, method: Method, others: () => readonly SourceText[]): boolean {
  const isDocumented = text.isScript && DOC_TYPE.test(text.source);
  // Nothing is in it, and nothing that it could bring along.
  if (text.isScript && !isDocumented && !/\b(?:import|require)\b|\bfrom\b/.test(text.source)) return false;
  const how = isDocumented ? undefined : howItStands(text, name, method);
  if (how !== undefined) return how === 'typed';
  const running = isFollowed(text) ? runTimeFunction(method) : undefined;
  if (running === undefined || running.takesAll || running.takesNothing) return !running?.takesNothing;
  const isHere = text.functions.some((one) => one.names.includes(name) && readsLike(running, one, text.tokens));
  if (!isHere || text.functions.some((one) => one.isTyped && isOverload(one, name))) return true;
  const files = [text, ...others().filter((file) => mentions(file, name))].filter(isFollowed);
  return files.some(({ functions, tokens }) => functions.some((one) => one.isTyped && readsLike(running, one, tokens)));
}

const isOverload = ({ form, names }: SourceFunction, name: string): boolean => form === 'signature' && names.includes(name);

/** Most methods stand there to the character, so that tokens are not needed to tell; undefined: they are. */
function howItStands(file: SourceText, name: string, method: Method): 'plain' | 'typed' | undefined {
  const text = Function.prototype.toString.call(method);
  const [params = '', own] = /^(?:async )?([a-zA-Z0-9]+)\([\w$\s,{}:]*\)/.exec(text) ?? [];
  if (own !== name || /\barguments\b/.test(text)) return undefined;
  // Where its name stands before another parenthesis there may be types, of an overload or of a method that this one hides.
  const [place, another] = file.source.matchAll(new RegExp(`\\b${name}\\s*[(<]`, 'g'));
  const at = (place?.index ?? -1) - text.indexOf(name);
  if (another !== undefined || !standsAt(text, file, at)) return undefined;
  return file.plain.startsWith(params, at) ? 'plain' : 'typed';
}
