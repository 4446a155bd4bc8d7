import { expect, it } from 'vitest'
import { readHost } from './host-name.ts'

it.each([
  ['git.example.lan', 'git.example.lan'],
  ['Git.Example.LAN.', 'git.example.lan'],
  ['localhost', 'localhost'],
  ['10.0.0.5', '10.0.0.5'],
  ['0x7f.1', '127.0.0.1'],
  ['::1', '::1'],
  ['[fd00:0::1]', 'fd00::1'],
  ['münchen.example', 'xn--mnchen-3ya.example'],
])('reads the host %s', (text, host) => expect(readHost(text)).toBe(host))

it.each([
  'git.example.lan:3000',
  '[::1]:80',
  'https://git.example.lan',
  'git.example.lan/path',
  'me@git.example.lan',
  '*.example.lan',
  'a,b',
  'a..b',
  'fe80::1%eth0',
  ' ',
  '',
])('takes "%s" for no host', (text) => expect(readHost(text)).toBeNull())
