// What the doctor finds: one line each, with how bad it is. No secret, no header value, no e-mail address is in any.

export interface Finding {
  /** `wrong`: exit 1. `warning`: it works, and may soon not. `note`: worth knowing. */
  readonly level: 'wrong' | 'warning' | 'note';
  readonly topic: 'node' | 'settings' | 'folder' | 'controllers' | 'credentials' | 'identity';
  readonly message: string;
  /** `file` or `file:line`. */
  readonly at?: string;
}

export type Report = (level: Finding['level'], message: string, at?: string) => void;

export function reportTo(findings: Finding[], topic: Finding['topic']): Report {
  return (level, message, at) => {
    findings.push({ level, topic, message, ...(at === undefined ? {} : { at }) });
  };
}
