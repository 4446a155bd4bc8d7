import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSmtp, type Smtp } from '../kit/smtp.ts'
import { useRealServer } from './real-server.ts'

// What docs/mail.md tells people, typed.

let smtp: Smtp
const settings: Record<string, string> = { SVC_MAIL_FROM: 'svc <svc@example.com>' }
beforeAll(async () => {
  smtp = await startSmtp()
  settings['SVC_SMTP_URL'] = smtp.url
})
afterAll(() => smtp.stop())
const real = useRealServer(settings)

async function mail(...line: readonly string[]) {
  const { stdout, stderr, status } = await real.svc(['mail', ...line])
  expect(status, stderr).toBe(0)
  return JSON.parse(stdout)
}

test('mail is chosen, tried, looked at and ended by svc', async () => {
  const chosen = ['approval.requested', 'question.asked', 'run.failed']
  expect((await mail('set', '--events', chosen.join(','))).events).toEqual(chosen)
  await mail('test')
  expect(smtp.taken).toHaveLength(1)
  expect(await mail('get')).toMatchObject({ events: chosen, about: 'mine', isOffered: true })
  expect((await mail('set', '--about', 'all')).events).toEqual(chosen)
  expect(await mail('set', '--events', 'none')).toMatchObject({ events: [], about: 'all' })
})
