// The words that hide a method, for those who only want to know whether a source has them.

export const MARK = /\b(?:private|protected)\b/;

/** Answers for one class: a set of names, or all but some. */
export interface HiddenNames {
  has(name: string): boolean;
}
