// The types of typescript.mjs.
export { default } from 'typescript-5';
