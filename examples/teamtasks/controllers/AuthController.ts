// /api/auth: sign-up, sign-in and sign-out are better-auth's. Twenty wrong tries in 15 minutes, from one address.
import { mount } from 'gatefold';
import { auth } from '../lib/auth.ts';

export default mount(auth.handler, {
  access: 'anyone',
  limit: { rate: '20/15m', count: 'failures' },
  unchecked: true,
});
