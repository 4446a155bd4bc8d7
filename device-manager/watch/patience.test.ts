import { expect, test } from 'vitest'
import { Patience } from './patience.ts'

test('who hangs is not asked again before it came back, and two that hang keep all others from being asked', async () => {
  const patience = new Patience({ sleep: async () => undefined }, 5_000)
  const asked: string[] = []
  const back: (() => void)[] = []
  const hang = (who: string) =>
    patience.wait(who, () => {
      asked.push(who)
      return new Promise<string>((resolve) => back.push(() => resolve('late')))
    })
  expect([await hang('a'), await hang('a'), await hang('b'), await hang('c')]).toEqual([null, null, null, null])
  expect(asked).toEqual(['a', 'b'])
  back[0]!()
  await Promise.resolve()
  expect(await hang('c')).toBeNull()
  expect(asked).toEqual(['a', 'b', 'c'])
})

test('an answer in time, and a refusal, are handed on', async () => {
  const patience = new Patience({ sleep: () => new Promise(() => undefined) }, 5_000)
  expect(await patience.wait('a', async () => 'answer')).toBe('answer')
  await expect(patience.wait('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await patience.wait('a', async () => 'again')).toBe('again')
})
