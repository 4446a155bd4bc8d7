/** Server-sent events as text, with a heartbeat before each and the given line end. */
export function formatMessages(
  messages: readonly { id: string | null; event: string; data: string }[],
  lineEnd = '\n',
): string {
  return messages
    .map(({ id, event, data }) => {
      const lines = [
        ':',
        '',
        ...(id === null ? [] : [`id: ${id}`]),
        ...(event === 'message' ? [] : [`event: ${event}`]),
        ...data.split('\n').map((line) => `data: ${line}`),
        '',
      ]
      return lines.map((line) => line + lineEnd).join('')
    })
    .join('')
}
