import { execFile } from 'node:child_process'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
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

// Where these shells are not installed their scripts are not read by anyone either.
test.runIf(existsSync('/usr/bin/zsh') || existsSync('/bin/zsh'))('the script is read by a real zsh', async () => {
  writeFileSync(join(home.dir, '_svc'), (await home.svc(['completion', 'zsh'])).stdout)
  expect(await inShell('zsh', ['-f', '-n', './_svc'])).toBe('')
})

test.runIf(existsSync('/usr/bin/fish'))('the script completes in a real fish', async () => {
  writeFileSync(join(home.dir, 'svc.fish'), (await home.svc(['completion', 'fish'])).stdout)
  expect(
    await inShell('fish', ['--no-config', '-c', 'source ./svc.fish; complete -C "svc run events --so"']),
  ).toContain('--sort')
})

test('there is no script for another shell', async () => {
  expect((await home.svc(['completion', 'tcsh'])).status).toBe(2)
})

function inShell(file: string, args: readonly string[]): Promise<string> {
  const env = { ...home.env, PATH: `${home.dir}:${home.env['PATH']}` }
  return new Promise((resolve, reject) => {
    execFile(file, [...args], { env, cwd: home.dir }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${error.message}\n${stderr}`))
    })
  })
}
