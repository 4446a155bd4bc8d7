import { expect, test } from 'vitest'
import { Together } from './together.ts'

/** Jobs that fail are negative; each call of `all` waits until it is let go. */
function scene({ most = 3 } = {}) {
  const calls: { key: string; jobs: readonly number[]; letGo(): void }[] = []
  const split: number[] = []
  const together = new Together<number, string>({
    most,
    async all(jobs, key) {
      await new Promise<void>((resolve) => calls.push({ key, jobs, letGo: resolve }))
      if (jobs.some((job) => job < 0)) throw new Error(`not ${jobs.join()}`)
      return jobs.map((job) => `${key}${job}`)
    },
    onSplit: (_, count) => void split.push(count),
  })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const letGo = async (at: number) => {
    calls[at]!.letGo()
    await turn()
  }
  return { together, calls, split, turn, letGo, jobsOf: () => calls.map(({ key, jobs }) => [key, ...jobs]) }
}

test('jobs of a turn are done together, and so are those that come meanwhile, a bounded number at once', async () => {
  const { together, turn, letGo, jobsOf } = scene()
  const first = [together.add('a', 1), together.add('a', 2)]
  await turn()
  expect(jobsOf()).toEqual([['a', 1, 2]])
  const others = [3, 4, 5, 6].map((job) => together.add('a', job))
  // Another key waits for none of them.
  const other = together.add('b', 1)
  await turn()
  expect(jobsOf()).toEqual([
    ['a', 1, 2],
    ['b', 1],
  ])
  await letGo(1)
  expect(await other).toBe('b1')
  await letGo(0)
  expect(await Promise.all(first)).toEqual(['a1', 'a2'])
  expect(jobsOf().slice(2)).toEqual([['a', 3, 4, 5]])
  await letGo(2)
  await letGo(3)
  expect(await Promise.all(others)).toEqual(['a3', 'a4', 'a5', 'a6'])
  const again = together.add('a', 7)
  await turn()
  await letGo(4)
  expect(await again).toBe('a7')
})

test('of jobs that fail together each is done by itself, and holds up none that comes after them', async () => {
  const { together, calls, split, turn, letGo, jobsOf } = scene()
  const bad = together.add('a', -1)
  const good = together.add('a', 2)
  await turn()
  const later = together.add('a', 3)
  await letGo(0)
  expect(split).toEqual([2])
  expect(jobsOf().slice(1)).toEqual([
    ['a', -1],
    ['a', 2],
    ['a', 3],
  ])
  await letGo(3)
  expect(await later).toBe('a3')
  await letGo(2)
  expect(await good).toBe('a2')
  calls[1]!.letGo()
  await expect(bad).rejects.toThrow('not -1')
})

test('a job that fails by itself fails once', async () => {
  const { together, calls, split, turn, jobsOf } = scene()
  const job = together.add('a', -1)
  await turn()
  calls[0]!.letGo()
  await expect(job).rejects.toThrow('not -1')
  expect([split, jobsOf()]).toEqual([[], [['a', -1]]])
})
