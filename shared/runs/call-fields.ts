/**
 * Fields of a tool's input by which a person knows the call, the first one that is there first. The device's gate shows the call by
 * it, and a rule that allows the call from now on is written about it.
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
