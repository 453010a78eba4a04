// What the doctor says of the identity providers: read by the code that serves them. Whom a row admits is not repeated.
import { join } from 'node:path';
import { createLog } from '../base/log.ts';
import { createProviders } from '../identity/providers.ts';
import type { Report } from './findings.ts';

export function checkIdentity(dataDir: string, report: Report): void {
  const path = join(dataDir, 'identity-providers.json');
  try {
    const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
    const providers = createProviders({ path, log });
    providers.close();
    for (const { name, reason } of providers.refused) report('wrong', `provider ${JSON.stringify(name)} was left out: ${reason}`, path);
    for (const { name, issuer, registration } of providers.list) {
      const admitted = typeof registration === 'string' ? registration : 'by rule';
      report('note', `provider ${JSON.stringify(name)}: ${issuer}, registration ${admitted}`, path);
    }
    if (providers.list.length === 0) report('note', 'no identity provider is configured: /api/idp-signin and /api/register answer 503');
  } catch (error) {
    report('wrong', (error as Error).message);
  }
}
