import type { ControllerParams, DateOnly, Email, Uuid } from 'gatefold';

interface Place {
  name: string;
  inside?: Place;
}

/** Accounts. */
export default class CustomerController {
  /** Opens an account. */
  created(customer: {
    name: string;
    email: Email;
    born?: DateOnly;
    newsletter?: boolean;
    place?: Place;
    notes?: Record<string, string>;
  }): {
    id: Uuid;
    name: string;
  } {
    return { id: '123e4567-e89b-42d3-a456-426614174000', name: customer.name };
  }

  /** One customer. */
  'GET {id}'(_: unknown, { path: { id } }: ControllerParams<{ path: { id: Uuid } }>): { id: Uuid } {
    return { id };
  }
}
