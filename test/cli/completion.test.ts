import { execFile } from 'node:child_process'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { spawn } from 'node-pty'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { makeHome, svcProgram, type Home } from './run-svc.ts'

let home: Home
beforeEach(() => {
  home = makeHome()
  const launcher = `#!/bin/sh\nexec '${process.execPath}' --disable-warning=ExperimentalWarning '${svcProgram}' "$@"\n`
  writeFileSync(join(home.dir, 'svc'), launcher)
  chmodSync(join(home.dir, 'svc'), 0o755)
})
afterEach(() => home.remove())

test.each([
  [['ru'], ['run']],
  [
    ['run', 'c'],
    ['cancel', 'change-set', 'context', 'cost', 'create'],
  ],
  [
    ['agent', 'config', ''],
    ['get', 'set'],
  ],
  [['run', 'events', '--so'], ['--sort']],
  [
    ['run', 'events', '--sort', ''],
    ['asc', 'desc'],
  ],
  [['run', 'events', '--sort=d'], ['--sort=desc']],
  [['run', 'get', ''], ['current']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
])('after %j may follow %j', async (words, expected) => {
  const end = await home.svc(['complete-words', '--', ...words])
  expect(
    end.stdout
      .trim()
      .split('\n')
      .map((line) => line.split('\t')[0]),
  ).toEqual(expected)
})

test('the script completes in a real bash', async () => {
  const end = await home.svc(['completion', 'bash'])
  writeFileSync(join(home.dir, 'completion.bash'), end.stdout)
  const ask = `. ./completion.bash; COMP_WORDS=(svc run events --so); COMP_CWORD=3; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`
  expect(await inShell('bash', ['--norc', '-c', ask])).toBe('--sort\n')
})

test.runIf(existsSync('/usr/bin/zsh') || existsSync('/bin/zsh'))('the script completes in a real zsh', async () => {
  writeFileSync(join(home.dir, '_svc'), (await home.svc(['completion', 'zsh'])).stdout)
  expect(await inShell('zsh', ['-f', '-n', './_svc'])).toBe('')
  const shell = inTerminal('zsh', ['-f', '-i'])
  try {
    shell.type("PROMPT='%%'; RPROMPT=; autoload -Uz compinit; compinit -u -D; source ./_svc; print re''ady\n")
    await waitFor(() => shell.shown().includes('ready\n'), 'zsh is ready', { about: shell.shown })
    shell.type('svc run events --so\t')
    await waitFor(() => shell.shown().includes('svc run events --sort'), 'a flag is completed', { about: shell.shown })
    shell.type(' \t')
    await waitFor(() => /asc\b[\s\S]*\bdesc/.test(shell.shown()), 'its values are shown', { about: shell.shown })
  } finally {
    shell.kill()
  }
})

test.runIf(!existsSync('/usr/bin/zsh') && !existsSync('/bin/zsh'))('no zsh is installed to complete in', () => {
  process.stderr.write('completion: NO ZSH IS INSTALLED HERE, so its script was not run.\n')
})
test.runIf(!existsSync('/usr/bin/fish'))('no fish is installed to complete in', () => {
  process.stderr.write('completion: NO FISH IS INSTALLED HERE, so its script was not run.\n')
})

test.runIf(existsSync('/usr/bin/fish'))('the script completes in a real fish', async () => {
  writeFileSync(join(home.dir, 'svc.fish'), (await home.svc(['completion', 'fish'])).stdout)
  expect(
    await inShell('fish', ['--no-config', '-c', 'source ./svc.fish; complete -C "svc run events --so"']),
  ).toContain('--sort')
  expect(
    await inShell('fish', ['--no-config', '-c', 'source ./svc.fish; complete -C "svc run events --sort "']),
  ).toMatch(/^asc\t.*\ndesc\t/m)
})

test('there is no script for another shell', async () => {
  expect((await home.svc(['completion', 'tcsh'])).status).toBe(2)
})

/** A shell of a person, who types. */
function inTerminal(file: string, args: string[]) {
  const env = { ...home.env, PATH: `${home.dir}:${home.env['PATH']}` }
  const pty = spawn(file, args, { name: 'xterm-256color', cols: 120, rows: 40, cwd: home.dir, env, encoding: null })
  const decoder = new TextDecoder()
  let text = ''
  let isOver = false
  pty.onData((chunk) => (text += decoder.decode(chunk, { stream: true })))
  pty.onExit(() => (isOver = true))
  return {
    shown: () => stripVTControlCharacters(text).replaceAll('\r', ''),
    type: (keys: string) => pty.write(keys),
    kill: () => void (isOver || process.kill(pty.pid, 'SIGKILL')),
  }
}

function inShell(file: string, args: readonly string[]): Promise<string> {
  const env = { ...home.env, PATH: `${home.dir}:${home.env['PATH']}` }
  return new Promise((resolve, reject) => {
    execFile(file, [...args], { env, cwd: home.dir }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${error.message}\n${stderr}`))
    })
  })
}
