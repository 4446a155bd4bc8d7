import { expect, test } from 'vitest'
import { quoted } from '../../../../trust/quote.ts'
import { toldAttachments } from '../../../conversations/attachments.ts'
import { idFrom } from '../../../../../shared/lib/ids.ts'
import { promptStartOf } from './prompt-start.ts'

test('of a prompt the words on one line, at most 200 characters, none of them cut in half', () => {
  expect(promptStartOf('Fix the  log-in\n\n- first\n\tsecond')).toBe('Fix the log-in - first second')
  expect(promptStartOf('\u001b[31m\u202e \n\n')).toBe('[31m')
  expect(promptStartOf(' \n ')).toBeNull()
  const long = promptStartOf('🚀'.repeat(300))!
  expect(Array.from(long)).toHaveLength(200)
  expect(long).toBe(`${'🚀'.repeat(199)}…`)
})

test('what was asked of the agent, where the prompt has words of ours before it', () => {
  const by = { id: null, name: 'Ada' }
  const asked = quoted({ as: 'request', what: 'message msg_1', by, text: 'Please look\nat the build' })
  const told = quoted({ as: 'information', what: 'message msg_0', by, text: 'nothing of it' })
  expect(promptStartOf(`You were mentioned.\n\n${told}\n\n${asked}\n\nAnswer in the conversation.`)).toBe(
    'Please look at the build',
  )
})

test('says nothing of attached files, which not everybody sees who sees the run', () => {
  const files = toldAttachments([
    { id: idFrom('file_6kR2wB9xTnV4pL7c'), name: 'salaries.csv', contentType: 'text/csv', sizeBytes: 3 },
  ])
  expect(promptStartOf(`Read them\n\n${files}`)).toBe('Read them')
  expect(promptStartOf(files.slice(0, files.indexOf('salaries') + 8))).toBeNull()
})
