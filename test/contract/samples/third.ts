export interface Third {
  third: 3;
}
export type Money = { amount: number; currency: 'EUR' | 'USD' };
class Named {
  id!: number;
}
export default Named;
