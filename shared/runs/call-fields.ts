/**
 * Fields of a tool's input by which a person recognises the call; the first one present counts. The device shows the
 * call by this field, and a rule that allows the call from now on names it.
 */
export const mainFields = [
  'command',
  'cmd',
  'file_path',
  'filePath',
  'notebook_path',
  'path',
  'url',
  'query',
  'pattern',
  'skill',
  'subagent_type',
] as const
