import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  // Svelte's browser build, also in tests.
  resolve: process.env.VITEST ? { conditions: ['browser'] } : {},
  base: './',
  clearScreen: false,
  server: { port: 5173, strictPort: false },
  build: {
    target: 'es2022',
    // The content security policy allows no inlined fonts or scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
  },
});
