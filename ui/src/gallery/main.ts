// The gallery page: one scene, named in the address, in the real UI over the fake port.

import { mount } from 'svelte';

import App from '../App.svelte';
import { Desk } from '../app/desk.svelte';
import '../kit/base.css';
import { createFakePort } from '../port/fake';
import { SHOTS } from './scenes';

const asked = new URLSearchParams(window.location.search);
const shot = SHOTS[asked.get('scene') ?? 'conversation']?.();
const target = document.getElementById('app');
if (shot && target) {
  const { scene } = shot;
  scene.settings.theme = asked.get('theme') ?? 'light';
  scene.settings.language = asked.get('language') ?? 'en';
  const port = createFakePort(scene);
  const desk = new Desk(port);
  await desk.start();
  // The conversation holds frames until its first snapshot is there.
  port.send({ event: 'session:frames', payload: { frames: scene.frames } });
  mount(App, { target, props: { desk } });
  document.body.dataset.ready = 'yes';
}
// For the program that takes the pictures.
Object.assign(window, {
  gallery: Object.fromEntries(
    Object.entries(SHOTS).map(([name, make]) => {
      const { press = [], keys = [] } = make();
      return [name, { press, keys }];
    }),
  ),
});
