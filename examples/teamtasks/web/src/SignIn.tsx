import { useState } from 'react';
import { auth } from './api.ts';
import { Form } from './Form.tsx';

export function SignIn() {
  const [isNew, setNew] = useState(false);

  async function send({ name = '', email = '', password = '' }: Record<string, string>) {
    const { error } = isNew
      ? await auth.signUp.email({ name, email, password })
      : await auth.signIn.email({ email, password });
    if (error) setProblem(error.message ?? error.statusText);
  }
  const [problem, setProblem] = useState('');

  return (
    <main className="sign-in">
      <h1>Teamtasks</h1>
      <Form label={isNew ? 'Sign up' : 'Sign in'} button={isNew ? 'Sign up' : 'Sign in'} send={send}>
        {isNew && (
          <label>
            Name <input name="name" autoComplete="name" required />
          </label>
        )}
        <label>
          E-mail <input name="email" type="email" autoComplete="email" required />
        </label>
        <label>
          Password
          <input
            name="password"
            type="password"
            minLength={8}
            autoComplete={isNew ? 'new-password' : 'current-password'}
            required
          />
        </label>
      </Form>
      <p role="alert" className="problem">
        {problem}
      </p>
      <button type="button" className="quiet" onClick={() => setNew(!isNew)}>
        {isNew ? 'I have an account' : 'I am new here'}
      </button>
    </main>
  );
}
