import calc
import report

assert not hasattr(calc, "f"), "calc.f is still there"
assert calc.add(2, 3) == 5, "add(2, 3) is not 5"
assert calc.subtract(5, 3) == 2, "subtract(5, 3) is not 2"
assert calc.total([1, 2, 3]) == 6, "total([1, 2, 3]) is not 6"
assert report.report([1, 2, 3]) == "sum of first two: 3, total: 6", "report([1, 2, 3]) is wrong"
print("ok")
