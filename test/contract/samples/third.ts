export interface Third {
  third: 3;
}
export type Money = { amount: number; currency: 'EUR' | 'USD' };
