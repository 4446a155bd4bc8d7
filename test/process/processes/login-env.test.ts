import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { probeLoginEnv } from '../../../device-manager/process/login-env.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { processesAround } from './family.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), 'svc-home-'))
})
afterEach(() => {
  const left = processesAround(home)
  for (const pid of left) process.kill(pid, 'SIGKILL')
  rmSync(home, { recursive: true, force: true })
  if (left.length > 0) throw new Error('The probe left processes behind.')
})

const base = {
  PATH: process.env['PATH'],
  LANG: 'C.UTF-8',
  SVC_DEVICE_TOKEN: 'never',
  NODE_OPTIONS: '--no-warnings',
  INVOCATION_ID: 'x',
}
const probe = (more: { shell?: string; timeoutMs?: number } = {}) =>
  probeLoginEnv({ shell: '/bin/bash', homeDir: home, world: realWorld, base, ...more })
const profile = (content: string) => writeFileSync(path.join(home, '.bash_profile'), content)

test('what the start-up files set is there, cut to the allow-list; what they print does no harm', async () => {
  profile(
    `echo welcome; printf 'PATH=/wrong\\0'; export PATH="$HOME/tools:$PATH" NVM_DIR="$HOME/.nvm" ANTHROPIC_API_KEY=$'two\\nlines'
     export DATABASE_PASSWORD=hidden SVC_TOKEN=hidden CLAUDECODE=1 CLAUDE_CODE_ENTRYPOINT=cli CLAUDE_CODE_SSE_PORT=1
     export CLAUDE_CODE_USE_BEDROCK=1 SEEN="$SVC_DEVICE_TOKEN$INVOCATION_ID$NODE_OPTIONS" XDG_SEEN="$SVC_DEVICE_TOKEN$INVOCATION_ID$NODE_OPTIONS"
     echo bye >&2`,
  )
  const { env, source, message } = await probe()
  expect({ source, message }).toEqual({ source: 'login_shell', message: null })
  expect(env).toMatchObject({
    HOME: home,
    SHELL: '/bin/bash',
    NVM_DIR: `${home}/.nvm`,
    ANTHROPIC_API_KEY: 'two\nlines',
    CLAUDE_CODE_USE_BEDROCK: '1',
    XDG_SEEN: '',
    LANG: 'C.UTF-8',
  })
  expect(env['PATH']!.startsWith(`${home}/tools:`)).toBe(true)
  expect(
    Object.keys(env).filter((name) =>
      /SVC|CLAUDECODE|ENTRYPOINT|SSE|PASSWORD|NODE_OPTIONS|INVOCATION|^SEEN/.test(name),
    ),
  ).toEqual([])
})

test('interactive start-up files are read too', async () => {
  writeFileSync(path.join(home, '.bashrc'), 'export PYENV_ROOT=/from/bashrc')
  profile('case $- in *i*) . ~/.bashrc;; esac')
  expect((await probe()).env['PYENV_ROOT']).toBe('/from/bashrc')
})

test('a start-up file that hangs costs the time limit, and nothing of it is left', async () => {
  profile('(trap "" HUP TERM INT; sleep 1000) & setsid sleep 1000 & sleep 1000')
  const startedAt = performance.now()
  const { env, source, message } = await probe({ timeoutMs: 300 })
  expect(performance.now() - startedAt).toBeLessThan(5000)
  expect(source).toBe('daemon')
  expect(message).toContain('in time')
  expect(env).toEqual({ PATH: base.PATH, LANG: 'C.UTF-8', HOME: home, SHELL: '/bin/bash' })
})

test('one that asks on standard input gets none, and one that leaves a child with the pipe does not delay', async () => {
  profile('sleep 1000 & read -r answer; export NVM_DIR="answer:$answer"')
  const startedAt = performance.now()
  expect((await probe({ timeoutMs: 4000 })).env['NVM_DIR']).toBe('answer:')
  expect(performance.now() - startedAt).toBeLessThan(3500)
})

test.each([
  ['exit 3', 'without telling'],
  ['exec true', 'without telling'],
  ['yes | head -c 3000000', 'without telling'],
])('`%s` in a start-up file: the daemon’s own', async (content, words) => {
  profile(content)
  const { source, message } = await probe()
  expect(source).toBe('daemon')
  expect(message).toContain(words)
})

test('no such shell, and a shell that is none', async () => {
  expect(await probe({ shell: '/no/such/shell' })).toMatchObject({ source: 'daemon', env: { HOME: home } })
  const odd = path.join(home, 'odd-shell')
  writeFileSync(odd, '#!/bin/sh\necho nothing to tell\n')
  chmodSync(odd, 0o755)
  expect(await probe({ shell: odd })).toMatchObject({ source: 'daemon', env: { SHELL: odd } })
})
