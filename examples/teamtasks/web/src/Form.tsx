import { type FormEvent, type ReactNode, useState } from 'react';
import { textOf } from './api.ts';

interface Props {
  label: string;
  button: string;
  children: ReactNode;
  /** Gets the fields of the form. What it throws is shown below the form. */
  send(fields: Record<string, string>): Promise<unknown>;
}

export function Form({ label, button, children, send }: Props) {
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    setBusy(true);
    try {
      await send(Object.fromEntries(new FormData(form)) as Record<string, string>);
      setProblem('');
      form.reset();
    } catch (error) {
      setProblem(textOf(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <form aria-label={label} onSubmit={submit}>
      {children}
      <button type="submit" disabled={isBusy}>
        {button}
      </button>
      {problem && (
        <p role="alert" className="problem">
          {problem}
        </p>
      )}
    </form>
  );
}
