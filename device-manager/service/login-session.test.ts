import { expect, test } from 'vitest'
import { askLoginSession } from './login-session.ts'
import type { ToolResult } from './tool.ts'

// The programs that are asked are stand-ins: this ran on no macOS.

const ended = (status: number | null, stdout = ''): ToolResult => ({ status, stdout, said: '' })
const asked = (managername: ToolResult, keychains: ToolResult) =>
  askLoginSession(async (name, args) => {
    if (name === 'launchctl' && args.join() === 'managername') return managername
    if (name === 'security' && args.join() === 'list-keychains') return keychains
    throw new Error(`${name} ${args.join(' ')}`)
  })

test.each([
  [
    'of a person who is signed in',
    ended(0, 'Aqua\n'),
    ended(0, '"login.keychain-db"'),
    { manager: 'Aqua', trusts: true },
  ],
  ['that has ended', ended(1), ended(1), { manager: null, trusts: false }],
  ['that has a name and answers nothing', ended(0, 'Background\n'), ended(1), { manager: 'Background', trusts: false }],
  ['that says nothing of itself', ended(0, ' \n'), ended(0), { manager: null, trusts: true }],
  ['whose services do not answer in time', ended(0, 'Aqua\n'), ended(null), { manager: 'Aqua', trusts: null }],
  ['of which nobody can be asked', ended(null), ended(0), null],
])('a session %s', async (_, managername, keychains, told) => {
  expect(await asked(managername, keychains)).toEqual(told)
})

test('a name that is long is cut, as the reply has room for it', async () => {
  expect((await asked(ended(0, 'x'.repeat(1_000)), ended(0)))?.manager).toHaveLength(64)
})
