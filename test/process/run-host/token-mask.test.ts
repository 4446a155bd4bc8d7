import { idFrom, type AgentRef, type RunId, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mintRunToken } from '../../../control-plane/http/run-token.ts'
import { newToken } from '../../../control-plane/http/token-hash.ts'
import { maskOwnTokens } from '../../../shared/lib/own-tokens.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { OwnTokenMask } from '../../../device-manager/run-host/output/redaction.ts'
import { cpuMsOf } from '../../kit/cpu-time.ts'

const subject = {
  runId: idFrom<RunId>('run_1'),
  fence: 1,
  workspaceId: idFrom<WorkspaceUuid>('w'),
  tokenGeneration: 1,
  agentRef: idFrom<AgentRef>('agt_1'),
}
const made = {
  '[redacted:svc_pat]': newToken(realWorld, 'svc_pat_'),
  '[redacted:svc_dev]': newToken(realWorld, 'svc_dev_'),
  '[redacted:svc_dsh]': newToken(realWorld, 'svc_dsh_'),
  '[redacted:svc_run]': mintRunToken(new Uint8Array(32), subject, Date.now()),
}

test.each(Object.entries(made))('%s', (mask, token) => {
  expect(maskOwnTokens(`{"token":"${token}"} Bearer ${token}\n${token}`)).toBe(
    `{"token":"${mask}"} Bearer ${mask}\n${mask}`,
  )
})

test('other words stay', () => {
  for (const text of ['svc_pat_...', 'svc_pat_short', 'svc_run', 'eyJhbGciOiJub25lIn0.e30.x', 'services'])
    expect(maskOwnTokens(text)).toBe(text)
})

test('however the bytes are cut, the same comes out', () => {
  const piece = fc.oneof(
    fc.constantFrom(...Object.values(made), 's', 'svc_', 'svc_pat_', 'eyJ', '.', ' ', '\n'),
    fc.uint8Array({ maxLength: 5 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), fc.array(fc.nat(60), { maxLength: 60 }), (pieces, cuts) => {
      const whole = Buffer.from(pieces.join(' '), 'latin1')
      const mask = new OwnTokenMask()
      const out: Uint8Array[] = []
      let at = 0
      for (const cut of cuts) {
        out.push(mask.push(whole.subarray(at, at + cut)))
        at += cut
      }
      out.push(mask.push(whole.subarray(at)), mask.flush())
      const text = Buffer.concat(out).toString('latin1')
      expect(text).toBe(maskOwnTokens(whole.toString('latin1')))
      for (const token of Object.values(made)) expect(text).not.toContain(token)
    }),
  )
})

test('a long text without any costs little', () => {
  const mask = new OwnTokenMask()
  const chunk = Buffer.from('svc svc_pat_ s eyJhbGciOi '.repeat(600))
  const spent = cpuMsOf(() => {
    for (let at = 0; at < 1_000; at++) mask.push(chunk)
  })
  expect(spent).toBeLessThan(2_000)
})

test('what all tokens begin with is released, and what makes a token of it is still replaced', () => {
  const mask = new OwnTokenMask()
  const fed = (text: string) => {
    const decoded = (bytes: Uint8Array) => Buffer.from(bytes).toString()
    return `${decoded(mask.push(Buffer.from(text)))}|${decoded(mask.release())}`
  }
  expect(fed('yes')).toBe('ye|s')
  expect(fed('vc_pat')).toBe('|vc_pat')
  expect(fed('_')).toBe('|_')
  expect(fed('0123')).toBe('|')
  expect(fed('456789abcdef.')).toBe('[redacted:svc_pat].|')
  expect(fed('Keys')).toBe('Key|s')
  expect(fed(' and a lot')).toBe(' and a lot|')
})
