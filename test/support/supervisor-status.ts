// The status that a healthy supervisor reports: one generation, all workers serve.
import type { SupervisorStatus } from '../../src/operate/ops/service-status.ts';

export function supervisorStatus(pids: readonly number[], change: Partial<SupervisorStatus> = {}): SupervisorStatus {
  return {
    generation: 1,
    servingSince: new Date(0),
    workers: pids.map((pid) => ({ pid, generation: 1, state: 'serving' })),
    notLoadable: [],
    groups: { loaded: 1, lost: [], wasComplete: true },
    rejected: undefined,
    generationsServed: 1,
    generationsRejected: 0,
    workersDied: 0,
    workersReplaced: 0,
    ...change,
  };
}
