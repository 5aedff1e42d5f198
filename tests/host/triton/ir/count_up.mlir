#loc = loc("kernels.py":150:0)
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<i32>, !tt.ptr<i32>) -> (), sym_name = "count_up", sym_visibility = "public"}> ({
  ^bb0(%arg0: !tt.ptr<i32> loc("kernels.py":150:0), %arg1: !tt.ptr<i32> loc("kernels.py":150:0)):
    %0 = "arith.constant"() <{value = true}> : () -> i1 loc(#loc1)
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32 loc(#loc1)
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32 loc(#loc2)
    %3 = "tt.addptr"(%arg1, %2) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32> loc(#loc3)
    %4 = "tt.atomic_rmw"(%arg0, %1, %0) <{atomic_rmw_op = 4 : i32, scope = 1 : i32, sem = 4 : i32}> : (!tt.ptr<i32>, i32, i1) -> i32 loc(#loc4)
    "tt.store"(%3, %4) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> () loc(#loc5)
    "tt.return"() : () -> () loc(#loc6)
  }) {noinline = false} : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc("kernels.py":151:37)
#loc3 = loc("kernels.py":151:23)
#loc4 = loc("kernels.py":151:64)
#loc5 = loc("kernels.py":151:41)
#loc6 = loc("kernels.py":151:4)

