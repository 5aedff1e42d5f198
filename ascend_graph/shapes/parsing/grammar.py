"""Grammar of shape relations as text, and the functions of the language."""

from __future__ import annotations

#: The grammar, in the EBNF of the Python reference; docs/shapes.md shows this text.
GRAMMAR = """\
relation    = [tensor {"," tensor}] "->" [tensor {"," tensor}] ["where" clause {"," clause}]
tensor      = NAME [list] alternative {"if" test "else" alternative}
list        = "[" NAME ["<" sum] "]"                  # only in front of another "["
alternative = [shape] [":" expression]
shape       = "[" [dim {"," dim}] "]" | "like" NAME ["[" INTEGER "]"] | "None" | "=" test
dim         = "..." | "*" (NAME ["[" (NAME | part) "]"] | call) ["@" axis] | ("_" | expression) ["@" axis]
axis        = ["-"] atom
part        = [expression] ":" [expression]
clause      = NAME "=" expression | expression

expression  = test ["if" test "else" expression]
test        = and {"or" and}
and         = not {"and" not}
not         = "not" not | comparison
comparison  = sum [("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not" "in" | "is" | "is" "not") sum]
sum         = product {("+" | "-") product}
product     = factor {("*" | "//" | "%") factor}
factor      = "-" factor | atom
atom        = INTEGER | STRING | "True" | "False" | "None" | "..." | call | NAME ["[" (expression | part) "]"]
            | "(" expression ")" | "(" expression "," [expression {"," expression}] ")"
call        = FUNCTION "(" [expression {"," expression}] ")"
"""


#: The functions of the language and the number of their arguments (at least, at most).
FUNCTIONS = {
    "ceildiv": (2, 2),
    "min": (1, 64),
    "max": (1, 64),
    "sum": (1, 1),
    "prod": (1, 1),
    "len": (1, 1),
    "rank": (1, 1),
    "numel": (1, 1),
    "index": (2, 2),
    "reshape": (2, 2),
    "ones": (1, 1),
    "dtype": (1, 1),
    "promote": (1, 64),
    "floating": (1, 64),
    "integral_sum": (1, 1),
    "real": (1, 1),
}


#: Functions that give a group of dimensions; they follow ``*``.
GROUP_FUNCTIONS = frozenset({"reshape", "ones"})


#: Functions that give a dtype.
DTYPE_FUNCTIONS = frozenset({"dtype", "promote", "floating", "integral_sum", "real"})


KEYWORDS = frozenset({"if", "else", "and", "or", "not", "in", "is", "where", "like", "True", "False", "None"})
