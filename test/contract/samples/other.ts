export interface Address {
  street: string;
  zip: string;
  country?: string | undefined;
}
export type Role = 'admin' | 'user' | 'guest';
export interface Page<T> {
  items: T[];
  total: number;
  next?: string | null;
}
export type Id = string;
export default interface Thing {
  thing: true;
}
export * from './third.ts';
export { default as Named } from './third.ts';
export type { Address as Addr };
export const LEVELS = ['low', 'mid', 'high'] as const;
