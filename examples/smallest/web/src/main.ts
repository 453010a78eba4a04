import { createClient, isApiError } from 'gatefold/client';
import type HelloController from '../../controllers/HelloController.ts';

const api = createClient<{ hello: typeof HelloController }>('');

const main = document.querySelector('main') as HTMLElement;
main.innerHTML = `
  <h1>Hello</h1>
  <form>
    <label>Your name <input name="name" autocomplete="given-name"></label>
    <button>Greet</button>
  </form>
  <p role="status"></p>`;
const form = main.querySelector('form') as HTMLFormElement;
const status = main.querySelector('[role=status]') as HTMLElement;

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    const { hello } = await api.hello.POST({ body: { name: String(new FormData(form).get('name')) } });
    status.textContent = `Hello, ${hello}!`;
  } catch (error) {
    if (!isApiError(error)) throw error;
    // A 422 says what is wrong with each field.
    status.textContent = error.errors.map(({ message }) => `The name ${message}`).join('\n') || error.message;
  }
});
