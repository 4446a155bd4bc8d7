import { expect, test } from 'vitest'
import { renderConfig } from './carried-settings.ts'

test('a carried value cannot add a setting of its own', () => {
  const value = 'x"\n[core]\n\tfsmonitor = evil\\'
  const lines = renderConfig({ 'core.excludesfile': value }, 'sha1', 1).split('\n')
  expect(lines).toContain('\texcludesfile = "x\\"\\n[core]\\n\\tfsmonitor = evil\\\\"')
  expect(lines.filter((line) => line.startsWith('['))).toEqual(['[core]'])
})
