// The dashboard of deploy/grafana, as far as the tests read it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEPLOY } from './deploy-proxy.ts';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
  readonly targets?: readonly { readonly expr: string }[];
}

const { panels, annotations, templating } = JSON.parse(readFileSync(join(DEPLOY, 'grafana/gatefold.json'), 'utf8')) as {
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] };
};

export const DASHBOARD = {
  panels,
  /** The queries of the panels and of the annotations. */
  queries: [
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr }))),
    ...annotations.list.map(({ name, expr }) => ({ title: name, expr })),
  ],
  /** The queries that fill the choices of the variables. */
  variables: templating.list.filter(({ query }) => query.startsWith('label_values')),
};
