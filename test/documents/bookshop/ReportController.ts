import type { Int, Operations } from 'gatefold';

/** Figures. */
export default class ReportController {
  static operations: Operations<ReportController> = { '*': { access: 'application' } };

  /** Sales by month. */
  index({ year }: { year: Int }): { month: string; sales: number }[] {
    return [{ month: `${year}-01`, sales: 0 }];
  }

  /**
   * Sales, as they were counted before.
   * @deprecated
   */
  old() {
    return [];
  }

  /** How many there are. */
  count(): number {
    return 2;
  }
}
